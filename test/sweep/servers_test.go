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

// The servers that the host calls. Requests to them are searched like all other outputs.

// doubles are the servers that the host calls.
type doubles struct {
	vendor *openaicompat.Server
	claude *anthropic.Server
	gemini *gemini.Server
	tools  *mcp.Server
	desk   *a2a.Server
}

// about is the peers' self-description, sent to every client.
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

// server is one called server.
type server struct {
	name string
	// header is the header of the key, after the prefix.
	header, prefix, key string
	all                 func() []vendor.Recorded
	seen                int
}

// keyOf returns the key that requests to a server must carry: the tenant's own if the runs name it
// and it exists.
func (r *rig) keyOf(a *server) string {
	if own := tenantKeys[a.name]; r.ref != "" && own != "" {
		return own
	}
	return a.key
}

// collect records the requests since the last call, because prompts leave the host, too. A key is
// sent only to its own server.
func (r *rig) collect() map[string][]vendor.Recorded {
	r.t.Helper()
	out := map[string][]vendor.Recorded{}
	for _, a := range r.asks {
		fresh := a.all()[a.seen:]
		a.seen += len(fresh)
		for _, q := range fresh {
			require.Equal(r.t, a.prefix+r.keyOf(a), q.Header.Get(a.header), "%s was called with another key", a.name)
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

// bodies joins all request bodies of a server.
func bodies(list []vendor.Recorded) string {
	var out strings.Builder
	for _, q := range list {
		out.Write(q.Body)
		out.WriteByte('\n')
	}
	return out.String()
}
