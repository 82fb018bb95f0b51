package sweep

import (
	"strings"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/a2a"
	"waybill.dev/waybill/test/double/anthropic"
	"waybill.dev/waybill/test/double/gemini"
	"waybill.dev/waybill/test/double/mcp"
	"waybill.dev/waybill/test/double/openaicompat"
	"waybill.dev/waybill/test/double/vendor"
)

// Whom the host asks: what leaves it for them is looked at like all else.

// doubles are the servers that the host asks.
type doubles struct {
	vendor *openaicompat.Server
	claude *anthropic.Server
	gemini *gemini.Server
	tools  *mcp.Server
	desk   *a2a.Server
}

// about is how the peers describe themselves; it is said to everybody who connects.
func about(batches []batch) string {
	var out strings.Builder
	for _, b := range batches[:1] {
		out.WriteString(b.at("peer's own words"))
	}
	return out.String()
}

func (r *rig) openDoubles(batches []batch) {
	r.vendor = openaicompat.New(openaicompat.Options{})
	r.t.Cleanup(r.vendor.Close)
	r.claude = anthropic.New(anthropic.Options{Models: []string{claudeModel}})
	r.t.Cleanup(r.claude.Close)
	r.gemini = gemini.New(gemini.Options{Models: []string{geminiModel}})
	r.t.Cleanup(r.gemini.Close)
	r.tools = mcp.New(mcp.Options{About: about(batches)})
	r.t.Cleanup(r.tools.Close)
	r.desk = a2a.New(a2a.Options{About: about(batches)})
	r.t.Cleanup(r.desk.Close)
	r.asks = []*server{
		{name: "vendor", header: "Authorization", prefix: "Bearer ", key: vendorKey, all: r.vendor.Requests},
		{name: "anthropic", header: "X-Api-Key", key: claudeKey, all: r.claude.Requests},
		{name: "gemini", header: "X-Goog-Api-Key", key: geminiKey, all: r.gemini.Requests},
		{name: "MCP server", header: "Authorization", prefix: "Bearer ", key: toolsKey, all: r.tools.Requests},
		{name: "A2A agent", header: "Authorization", prefix: "Bearer ", key: deskKey, all: r.desk.Requests},
	}
}

// server is one that is asked.
type server struct {
	name string
	// header carries the key, behind the prefix.
	header, prefix, key string
	all                 func() []vendor.Recorded
	seen                int
}

// keyOf is the key that a server is to be asked with now: the tenant's own, where the
// runs name it and there is one.
func (r *rig) keyOf(a *server) string {
	if own := tenantKeys[a.name]; r.ref != "" && own != "" {
		return own
	}
	return a.key
}

// collect keeps what the servers have been sent since the last time: the prompts leave
// the host, too. A key is sent to its server, and to nobody else.
func (r *rig) collect() map[string][]vendor.Recorded {
	r.t.Helper()
	out := map[string][]vendor.Recorded{}
	for _, a := range r.asks {
		fresh := a.all()[a.seen:]
		a.seen += len(fresh)
		for _, q := range fresh {
			require.Equal(r.t, a.prefix+r.keyOf(a), q.Header.Get(a.header), "%s was asked with another key", a.name)
			r.add(a.name, q.Body)
			for name, values := range q.Header {
				if name != a.header {
					r.add(a.name+" headers", []byte(name+": "+strings.Join(values, ",")))
				}
			}
			r.add(a.name+" headers", []byte(q.Path+"?"+q.Query.Encode()))
		}
		out[a.name] = fresh
	}
	return out
}

// bodies are all of what a server was sent.
func bodies(list []vendor.Recorded) string {
	var out strings.Builder
	for _, q := range list {
		out.Write(q.Body)
		out.WriteByte('\n')
	}
	return out.String()
}
