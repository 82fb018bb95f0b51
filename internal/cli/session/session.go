// Package session is what every command shares: which host it talks to, as whom, and
// how it writes what it finds.
//
// A setting comes from a flag, else from the environment (WAYBILL_ and its name in
// capitals), else from the context, else from its default.
package session

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/contexts"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/keyring"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/internal/version"
)

// Session holds the flags of the command that runs.
type Session struct {
	Getenv func(string) string
	Now    func() time.Time

	url, context, tokenFile, ca string
	tokenStdin                  bool
	timeout                     time.Duration
	output, color               string
	query, template             string
	columns                     []string
}

// New makes the session of a process.
func New() *Session { return &Session{Getenv: os.Getenv, Now: time.Now} }

// Defaults of a host that `waybill dev` starts.
const (
	defaultURL   = "http://127.0.0.1:8080"
	defaultToken = "dev-key"
)

// Withheld is what is shown of a credential.
const Withheld = "(set, not shown)"

// TargetFlags say which host, and as whom. There is none for the credential itself:
// others read the command lines of a machine.
func (s *Session) TargetFlags(f *pflag.FlagSet) {
	f.StringVar(&s.url, "url", "", "URL of the host, with its base path (WAYBILL_URL; default "+defaultURL+")")
	f.StringVar(&s.context, "context", "", "context to use (WAYBILL_CONTEXT; default the current one)")
	f.StringVar(&s.tokenFile, "token-file", "", "file with the credential (WAYBILL_TOKEN_FILE; the credential itself: WAYBILL_TOKEN)")
	f.BoolVar(&s.tokenStdin, "token-stdin", false, "read the credential from the first line of standard input")
	f.StringVar(&s.ca, "ca", "", "file of PEM certificates that vouch for the host (WAYBILL_CA)")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long one answer of the host may take")
}

// FormatFlags say in which form results are written.
func (s *Session) FormatFlags(f *pflag.FlagSet) {
	f.StringVarP(&s.output, "output", "o", string(render.Table), "table, wide, json, jsonl, yaml or name")
	f.StringVar(&s.query, "query", "", "jq expression over the JSON document; with -o json, jsonl or yaml")
	f.StringVar(&s.template, "template", "", "Go template over the JSON document, instead of it; json writes a value as JSON")
}

// OutputFlags are those, and what a table looks like.
func (s *Session) OutputFlags(f *pflag.FlagSet) {
	s.FormatFlags(f)
	f.StringSliceVar(&s.columns, "columns", nil, "columns of the table, by name")
	f.StringVar(&s.color, "color", term.Auto, "auto, always or never (NO_COLOR: never)")
}

// Flags are those of a command that asks a host and shows what it says.
func (s *Session) Flags(c *cobra.Command) {
	s.TargetFlags(c.PersistentFlags())
	s.OutputFlags(c.PersistentFlags())
}

// Printer writes as the flags say.
func (s *Session) Printer(cmd *cobra.Command) (*render.Printer, error) {
	f, err := render.ParseFormat(s.output)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	p := &render.Printer{Out: cmd.OutOrStdout(), Format: f, Columns: s.columns}
	if p.Color, err = term.Colored(s.color, p.Out, s.Getenv); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	p.Width, _ = term.Size(p.Out, s.Getenv)
	switch {
	case s.query == "" && s.template == "":
		return p, nil
	case s.query != "" && s.template != "":
		return nil, exit.Usagef("--query and --template: give one of them")
	}
	if f.ForPeople() && !cmd.Flags().Changed("output") {
		p.Format = render.JSON
	} else if f.ForPeople() || f == render.Name {
		return nil, exit.Usagef("--query and --template take documents: want -o json, jsonl or yaml")
	}
	if s.template != "" {
		if p.Query, err = render.CompileTemplate(s.template, p.Out); err != nil {
			return nil, err
		}
		return p, nil
	}
	if p.Query, err = render.CompileQuery(cmd.Context(), s.query); err != nil {
		return nil, err
	}
	return p, nil
}

// Setting is one value, and where it is from.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	secret string
}

// Target is the host that a command talks to.
type Target struct {
	Context, URL, Token, CA Setting
}

// Settings lists them, without the credential.
func (t Target) Settings() []Setting { return []Setting{t.Context, t.URL, t.Token, t.CA} }

// Resolve finds out which host, and as whom.
func (s *Session) Resolve(cmd *cobra.Command) (Target, error) {
	t := Target{Context: Setting{Name: "context", Source: "default"}, CA: Setting{Name: "ca", Source: "default"}}
	file, path, err := s.Contexts()
	if err != nil {
		return t, err
	}
	t.Context = s.first(t.Context, flag("--context", s.context), s.env("WAYBILL_CONTEXT"), source{file.Current, path})
	var at contexts.Context
	if t.Context.Value != "" {
		if at, err = file.Get(t.Context.Value); err != nil {
			return t, exit.With(exit.NotFound, err)
		}
	}
	of := "context " + t.Context.Value
	t.URL = s.first(Setting{
		Name:   "url",
		Value:  defaultURL,
		Source: "default",
	}, flag("--url", s.url), s.env("WAYBILL_URL"), source{at.URL, of})
	t.CA = s.first(t.CA, flag("--ca", s.ca), s.env("WAYBILL_CA"), source{at.CA, of})
	t.Token, err = s.token(cmd, t.URL.Value, t.Context.Value, at)
	return t, err
}

// Contexts reads the user's file of contexts.
func (s *Session) Contexts() (contexts.File, string, error) {
	path, err := contexts.Path(s.Getenv)
	if err != nil {
		return contexts.File{}, "no file of contexts", nil //nolint:nilerr // a process without a home has no contexts
	}
	f, err := contexts.Load(path)
	if err != nil {
		return f, path, exit.With(exit.Usage, err)
	}
	return f, path, nil
}

type source struct{ value, name string }

func flag(name, value string) source      { return source{value, "flag " + name} }
func (s *Session) env(name string) source { return source{s.Getenv(name), "environment " + name} }

func (*Session) first(d Setting, of ...source) Setting {
	for _, o := range of {
		if o.value != "" {
			d.Value, d.Source = o.value, o.name
			return d
		}
	}
	return d
}

// token finds the credential. That of a context is for the context's host, and the
// one that everybody knows for this machine: neither is sent elsewhere.
func (s *Session) token(cmd *cobra.Command, to, name string, at contexts.Context) (Setting, error) {
	t := Setting{Name: "token", Source: "none"}
	of := "context " + name
	set := func(secret, from string) (Setting, error) {
		t.Value, t.secret, t.Source = Withheld, secret, from
		return t, nil
	}
	fromFile := func(path, from string) (Setting, error) {
		b, err := os.ReadFile(path) //nolint:gosec // G304: the user names the file
		if err != nil {
			return t, exit.With(exit.Usage, fmt.Errorf("%s: %w", from, err))
		}
		secret, _, _ := strings.Cut(string(b), "\n")
		if secret = strings.TrimSpace(secret); secret == "" {
			return t, exit.Usagef("%s: %s is empty", from, path)
		}
		return set(secret, from)
	}
	switch {
	case s.tokenStdin && s.tokenFile != "":
		return t, exit.Usagef("--token-stdin and --token-file: want one of them")
	case s.tokenStdin:
		line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			return t, exit.Usagef("--token-stdin: standard input has no first line: %w", errors.Join(err, io.ErrUnexpectedEOF))
		}
		return set(line, "flag --token-stdin")
	case s.tokenFile != "":
		return fromFile(s.tokenFile, "flag --token-file")
	case s.Getenv("WAYBILL_TOKEN") != "":
		return set(s.Getenv("WAYBILL_TOKEN"), "environment WAYBILL_TOKEN")
	case s.Getenv("WAYBILL_TOKEN_FILE") != "":
		return fromFile(s.Getenv("WAYBILL_TOKEN_FILE"), "environment WAYBILL_TOKEN_FILE")
	case sameHost(at.URL, to) && at.Token != "":
		return set(at.Token, of)
	case sameHost(at.URL, to) && at.TokenFile != "":
		return fromFile(at.TokenFile, of)
	case sameHost(at.URL, to) && at.Keyring:
		secret, err := keyring.Get(cmd.Context(), keyring.Entry{Context: name, URL: at.URL})
		if errors.Is(err, keyring.ErrNone) {
			err = fmt.Errorf("%w; keep it there: waybill context set %s --token-stdin --keyring", err, name)
		}
		if err != nil {
			return t, exit.With(exit.Denied, fmt.Errorf("%s: %w; --token-file, --token-stdin and WAYBILL_TOKEN go before it", of, err))
		}
		return set(secret, of+", keyring")
	case loopback(to):
		return set(defaultToken, "default of a host on this machine")
	}
	return t, nil
}

func sameHost(a, b string) bool {
	x, err1 := url.Parse(a)
	y, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && x.Host != "" && x.Scheme == y.Scheme && x.Host == y.Host
}

func loopback(to string) bool {
	u, err := url.Parse(to)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Client calls the host that the flags name.
func (s *Session) Client(cmd *cobra.Command) (*client.Client, error) {
	t, err := s.Resolve(cmd)
	if err != nil {
		return nil, err
	}
	return s.ClientOf(t)
}

// ClientOf calls a host.
func (s *Session) ClientOf(t Target) (*client.Client, error) {
	transport, err := Transport(t.CA.Value)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	c, err := client.New(t.URL.Value, client.WithToken(t.Token.secret), client.WithTimeout(s.timeout),
		client.WithTransport(transport), client.WithUserAgent(version.Name+"-cli/"+version.Version))
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s: %w", t.URL.Source, err))
	}
	return c, nil
}

// Transport trusts the certificates of a file besides those of the system.
func Transport(ca string) (http.RoundTripper, error) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if ca == "" || !ok {
		return http.DefaultTransport, nil
	}
	pem, err := os.ReadFile(ca) //nolint:gosec // G304: the user names the file
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca: %s holds no PEM certificate", ca)
	}
	t = t.Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

// Talk tells people something beside the result.
func Talk(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintln(cmd.ErrOrStderr(), term.Clean(fmt.Sprintf(format, args...)))
}

// WantsJSON reports whether a command was asked for JSON, also when it has failed.
func WantsJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("output")
	return f != nil && (f.Value.String() == string(render.JSON) || f.Value.String() == string(render.JSONL))
}
