// Package session has the settings that all commands share: the host, the credential, and the
// output format.
//
// A setting is taken from the first of: flag, environment (WAYBILL_ and its name in capitals),
// context, default.
package session

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/archive/offline"
	"waybill.dev/waybill/internal/archive/store"
	"waybill.dev/waybill/internal/cli/contexts"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/keyring"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/internal/version"
)

// Session has the values of the shared flags.
type Session struct {
	Getenv func(string) string
	Now    func() time.Time

	url, context, tokenFile, ca string
	tokenStdin                  bool
	timeout                     time.Duration
	output, color               string
	query, template             string
	raw                         bool
	columns                     []string
}

// New returns the session of the process.
func New() *Session { return &Session{Getenv: os.Getenv, Now: time.Now} }

// Defaults for a host started with `waybill dev`.
const (
	defaultURL   = "http://127.0.0.1:8080"
	defaultToken = "dev-key"
)

// Withheld is displayed instead of a credential.
const Withheld = "(set, not shown)"

// TargetFlags adds the flags that select the host and the credential. No flag takes the credential
// itself, because other users of the machine can read command lines.
func (s *Session) TargetFlags(f *pflag.FlagSet) {
	f.StringVar(&s.url, "url", "", "URL of the host, with its base path, or archive: and a file, a directory or s3://BUCKET/PREFIX with archives (WAYBILL_URL; default "+defaultURL+")")
	f.StringVar(&s.context, "context", "", "context to use (WAYBILL_CONTEXT; default the current one)")
	f.StringVar(&s.tokenFile, "token-file", "", "file with the credential (WAYBILL_TOKEN_FILE; the credential itself: WAYBILL_TOKEN)")
	f.BoolVar(&s.tokenStdin, "token-stdin", false, "read the credential from the first line of standard input")
	f.StringVar(&s.ca, "ca", "", "PEM file of CAs for the host (WAYBILL_CA)")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "maximum time of a request")
}

// FormatFlags adds the flags of the output format.
func (s *Session) FormatFlags(f *pflag.FlagSet) {
	f.StringVarP(&s.output, "output", "o", string(render.Table), "table, wide, json, jsonl, yaml or name")
	f.StringVar(&s.query, "query", "", "jq expression applied to the JSON document; with -o json, jsonl or yaml")
	f.BoolVarP(&s.raw, "raw", "r", false, "print results of --query that are strings as text, without quotes")
	f.StringVar(&s.template, "template", "", "Go template to print instead of the JSON document; its function json encodes a value")
}

// OutputFlags adds FormatFlags and the flags of tables.
func (s *Session) OutputFlags(f *pflag.FlagSet) {
	s.FormatFlags(f)
	f.StringSliceVar(&s.columns, "columns", nil, "names of the table's columns")
	f.StringVar(&s.color, "color", term.Auto, "auto, always or never (NO_COLOR: never)")
}

// Flags adds the flags of a command that calls a host and prints the result.
func (s *Session) Flags(c *cobra.Command) {
	s.TargetFlags(c.PersistentFlags())
	s.OutputFlags(c.PersistentFlags())
}

// Printer returns the printer for the flags.
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
	case s.raw && (s.query == "" || f == render.YAML):
		return nil, exit.Usagef("--raw needs --query, and no -o yaml")
	case s.query == "" && s.template == "":
		return p, nil
	case s.query != "" && s.template != "":
		return nil, exit.Usagef("--query and --template cannot be combined")
	}
	if f.ForPeople() && !cmd.Flags().Changed("output") {
		p.Format = render.JSON
	} else if f.ForPeople() || f == render.Name {
		return nil, exit.Usagef("--query and --template need -o json, jsonl or yaml")
	}
	if s.template != "" {
		if p.Query, err = render.CompileTemplate(s.template, p.Out); err != nil {
			return nil, err
		}
		return p, nil
	}
	p.Raw = s.raw
	if p.Query, err = render.CompileQuery(cmd.Context(), s.query); err != nil {
		return nil, err
	}
	return p, nil
}

// Setting is a value and its source.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	secret string
}

// Target is the host that a command calls, and the credential.
type Target struct {
	Context, URL, Token, CA Setting
}

// Settings returns the settings in the order of display.
func (t Target) Settings() []Setting { return []Setting{t.Context, t.URL, t.Token, t.CA} }

// Resolve determines the host and the credential.
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

// Contexts reads the user's contexts file.
func (s *Session) Contexts() (contexts.File, string, error) {
	path, err := contexts.Path(s.Getenv)
	if err != nil {
		return contexts.File{}, "no contexts file", nil //nolint:nilerr // a process without a home has no contexts
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

// token determines the credential. The credential of a context is sent to the context's host only,
// and the default credential to this machine only.
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
		return t, exit.Usagef("--token-stdin and --token-file cannot be combined")
	case s.tokenStdin:
		line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			return t, exit.Usagef("--token-stdin: standard input is empty: %w", errors.Join(err, io.ErrUnexpectedEOF))
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
			err = fmt.Errorf("%w; set it with waybill context set %s --token-stdin --keyring", err, name)
		}
		if err != nil {
			return t, exit.With(exit.Denied, fmt.Errorf("%s: %w; --token-file, --token-stdin or WAYBILL_TOKEN override it", of, err))
		}
		return set(secret, of+", keyring")
	case loopback(to):
		return set(defaultToken, "default for a host on this machine")
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

// Client returns a client for the host of the flags.
func (s *Session) Client(cmd *cobra.Command) (*client.Client, error) {
	t, err := s.Resolve(cmd)
	if err != nil {
		return nil, err
	}
	return s.ClientOf(t)
}

// archiveScheme starts a URL that names archives instead of a host.
const archiveScheme = "archive:"

// CheckURL reports a URL of neither a host nor archives.
func CheckURL(text string) error {
	if source, ok := strings.CutPrefix(text, archiveScheme); ok {
		return store.Check(source)
	}
	_, err := client.New(text)
	return err
}

// AbsoluteURL makes the path of archives absolute, for another working directory.
func AbsoluteURL(text string) string {
	source, ok := strings.CutPrefix(text, archiveScheme)
	if !ok || store.InBucket(source) {
		return text
	}
	path, err := filepath.Abs(source)
	if err != nil {
		return text
	}
	return archiveScheme + path
}

// ofArchives returns a client that reads archives.
func ofArchives(source string, options ...client.Option) (*client.Client, error) {
	target, err := store.OpenSource(context.Background(), source)
	if err != nil {
		return nil, err
	}
	return client.New(archiveBase, append(options, client.WithTransport(offline.New(target)))...)
}

// archiveBase is the base URL of clients that read archives. No host can have the name.
const archiveBase = "http://archive.invalid"

// ReadsArchives reports whether a client reads archives.
func ReadsArchives(c *client.Client) bool { return c.Base() == archiveBase }

// ClientOf returns a client for a host, or for archives.
func (s *Session) ClientOf(t Target) (*client.Client, error) {
	if source, ok := strings.CutPrefix(t.URL.Value, archiveScheme); ok {
		c, err := ofArchives(source, client.WithTimeout(s.timeout))
		if err != nil {
			return nil, exit.With(exit.Usage, fmt.Errorf("%s: %w", t.URL.Source, err))
		}
		return c, nil
	}
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

// Transport returns a transport that trusts the CAs of a file in addition to the system's.
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

// Notice prints a message for people to standard error.
func Notice(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintln(cmd.ErrOrStderr(), term.Clean(fmt.Sprintf(format, args...)))
}

// WantsJSON reports whether the output format is JSON, also if the flags are invalid.
func WantsJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("output")
	return f != nil && (f.Value.String() == string(render.JSON) || f.Value.String() == string(render.JSONL))
}
