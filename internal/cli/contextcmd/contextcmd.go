// Package contextcmd has the commands about contexts: named hosts with their credentials.
package contextcmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/contexts"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/keyring"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
)

// Command is `waybill context`.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:   "context",
		Short: "Manage contexts: named hosts with their URLs and credentials",
		Long: `Manages named hosts in $XDG_CONFIG_HOME/waybill/contexts.yaml, readable by its owner only.
A setting is taken from the first of: flag, environment (WAYBILL_URL, WAYBILL_TOKEN,
WAYBILL_TOKEN_FILE, WAYBILL_CA, WAYBILL_CONTEXT), context, default. The default is a host on this
machine. The credential of a context is sent to the context's URL only.`,
		Example: `  waybill context set prod --url https://waybill.example --token-stdin --use < token.txt
  waybill context show --source`,
	}
	c.AddCommand(listCommand(s), useCommand(s), setCommand(s), showCommand(s), removeCommand(s))
	return c
}

// edit changes the contexts file.
func edit(s *session.Session, change func(*contexts.File) error) error {
	path, err := contexts.Path(s.Getenv)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	f, err := contexts.Load(path)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := change(&f); err != nil {
		return err
	}
	return f.Save(path)
}

// row is a context in a list.
type row struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	contexts.Context
	Signed string `json:"credential"`
}

func rowOf(f contexts.File, name string) row {
	c := f.Contexts[name]
	r := row{Name: name, Current: name == f.Current, Context: c, Signed: "none"}
	switch {
	case c.Token != "":
		r.Signed = "token"
	case c.TokenFile != "":
		r.Signed = "file " + c.TokenFile
	case c.Keyring:
		r.Signed = "keyring"
	}
	return r
}

func listCommand(s *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List contexts",
		Example: `  waybill context list -o name`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			f, path, err := s.Contexts()
			if err != nil {
				return err
			}
			rows := []row{}
			for _, name := range f.Names() {
				rows = append(rows, rowOf(f, name))
			}
			doc, err := render.Encode(map[string]any{"contexts": rows})
			if err != nil {
				return err
			}
			encode := func(r row) []byte {
				b, err := render.Encode(r)
				if err != nil {
					return nil
				}
				return b
			}
			if len(rows) == 0 && p.Format.ForPeople() {
				session.Notice(cmd, "no contexts in %s", path)
			}
			return render.Rows(p, doc, rows, encode, func(r row) string { return r.Name }, []render.Column[row]{
				{Name: "CURRENT", Value: func(r row) string {
					if r.Current {
						return "*"
					}
					return " "
				}},
				{Name: "NAME", Value: func(r row) string { return r.Name }},
				{Name: "URL", Flex: true, Value: func(r row) string { return r.URL }},
				{Name: "CREDENTIAL", Flex: true, Value: func(r row) string { return r.Signed }},
			})
		},
	}
	s.OutputFlags(c.Flags())
	return c
}

func useCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Set the current context",
		Example:           `  waybill context use prod`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(s),
		RunE: func(_ *cobra.Command, args []string) error {
			return edit(s, func(f *contexts.File) error {
				_, err := f.Get(args[0])
				f.Current = args[0]
				return exit.With(exit.NotFound, err)
			})
		},
	}
}

// nameable matches names that need no quotes in shells and YAML.
var nameable = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func setCommand(s *session.Session) *cobra.Command {
	var at contexts.Context
	var how credential
	var use bool
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Create or change a context",
		Long: `Creates a context, or changes the settings given as flags. The credential is read from
standard input (--token-stdin) and stored in the contexts file, or with --keyring in the operating
system's keyring. --token-file stores the path of a file instead. No flag takes the credential
itself, because other users of the machine can read command lines. --keyring alone moves a stored
credential from the contexts file to the keyring.`,
		Example: `  waybill context set prod --url https://waybill.example --token-file ~/.waybill-token
  pass show waybill | waybill context set prod --token-stdin --keyring`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !nameable.MatchString(args[0]) {
				return exit.Usagef("%q: a name has letters, digits, ., _ and - only", args[0])
			}
			var was, c contexts.Context
			err := edit(s, func(f *contexts.File) error {
				was = f.Contexts[args[0]]
				c = was
				if at.URL != "" {
					c.URL = session.AbsoluteURL(at.URL)
				}
				if err := session.CheckURL(c.URL); err != nil {
					return exit.Usagef("--url: %w", err)
				}
				if at.CA != "" {
					c.CA = absolute(at.CA)
				}
				if err := how.put(cmd, args[0], was, &c); err != nil {
					return err
				}
				f.Contexts[args[0]] = c
				if use || f.Current == "" {
					f.Current = args[0]
				}
				return nil
			})
			if err == nil && (!c.Keyring || c.URL != was.URL) {
				forget(cmd, args[0], was)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&at.URL, "url", "", "URL of the host, with its base path, or archive: and a file, a directory or s3://BUCKET/PREFIX with archives")
	f.StringVar(&how.file, "token-file", "", "file with the credential; only its path is stored")
	f.BoolVar(&how.stdin, "token-stdin", false, "read the credential from the first line of standard input and store it")
	f.BoolVar(&how.none, "no-token", false, "remove the credential")
	f.BoolVar(&how.keyring, "keyring", false, "store the credential in the operating system's keyring instead of the contexts file")
	f.StringVar(&at.CA, "ca", "", "PEM file of CAs for the host")
	f.BoolVar(&use, "use", false, "also set it as the current context")
	c.MarkFlagsMutuallyExclusive("token-file", "token-stdin", "no-token")
	c.MarkFlagsMutuallyExclusive("token-file", "keyring")
	c.MarkFlagsMutuallyExclusive("no-token", "keyring")
	return c
}

// credential has the flags that set or remove a context's credential.
type credential struct {
	file                 string
	stdin, none, keyring bool
}

// put applies the flags to the context.
func (f credential) put(cmd *cobra.Command, name string, was contexts.Context, c *contexts.Context) error {
	switch {
	case f.none:
		c.Token, c.TokenFile, c.Keyring = "", "", false
	case f.file != "":
		c.Token, c.TokenFile, c.Keyring = "", absolute(f.file), false
	case f.stdin:
		line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			return exit.Usagef("--token-stdin: standard input is empty: %w", errors.Join(err, io.ErrUnexpectedEOF))
		}
		c.Token, c.TokenFile, c.Keyring = line, "", false
	case c.Keyring && c.URL != was.URL:
		return exit.Usagef("the stored credential is for %s; set one for %s with --token-stdin --keyring, or use --no-token", was.URL, c.URL)
	}
	if !f.keyring || c.Keyring { // already stored there
		return nil
	}
	if c.Token == "" {
		return exit.Usagef("--keyring: no credential to store; set it with --token-stdin")
	}
	if err := keyring.Set(cmd.Context(), keyring.Entry{Context: name, URL: c.URL}, c.Token); err != nil {
		return exit.With(exit.Failed, fmt.Errorf("--keyring: %w; use --token-stdin alone to store it in the contexts file, or --token-file", err))
	}
	c.Token, c.Keyring = "", true
	return nil
}

// forget deletes an unused credential from the keyring.
func forget(cmd *cobra.Command, name string, was contexts.Context) {
	if !was.Keyring {
		return
	}
	if err := keyring.Delete(cmd.Context(), keyring.Entry{Context: name, URL: was.URL}); err != nil {
		session.Notice(cmd, "the credential for %s may still be in the keyring: %s", was.URL, err)
	}
}

// absolute makes a path independent of the working directory.
func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}

func showCommand(s *session.Session) *cobra.Command {
	var source bool
	c := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show a context, or the effective settings",
		Long: `Shows a context; without a name, shows the settings that commands use. --source adds the source
of each setting. Credentials are never shown.`,
		Example: `  waybill context show --source
  WAYBILL_URL=http://127.0.0.1:9000 waybill context show --source`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				f, _, err := s.Contexts()
				if err != nil {
					return err
				}
				if _, err := f.Get(args[0]); err != nil {
					return exit.With(exit.NotFound, err)
				}
				r := rowOf(f, args[0])
				return p.Value(r, r.Name, func(w io.Writer) error {
					return render.Pairs(w, "name", r.Name, "url", r.URL, "credential", r.Signed, "ca", r.CA)
				})
			}
			t, err := s.Resolve(cmd)
			if err != nil {
				return err
			}
			return settings(p, t, source)
		},
	}
	c.Flags().BoolVar(&source, "source", false, "show the source of each setting")
	s.TargetFlags(c.Flags())
	s.OutputFlags(c.Flags())
	return c
}

func settings(p *render.Printer, t session.Target, source bool) error {
	return p.Value(map[string]any{"settings": t.Settings()}, t.URL.Value, func(w io.Writer) error {
		var pairs []string
		for _, x := range t.Settings() {
			text := x.Value
			if text == "" {
				text = "-"
			}
			if source {
				text = fmt.Sprintf("%-32s  %s", text, x.Source)
			}
			pairs = append(pairs, x.Name, text)
		}
		return render.Pairs(w, pairs...)
	})
}

func removeCommand(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:               "rm NAME",
		Short:             "Remove a context",
		Example:           `  waybill context rm staging`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			var was contexts.Context
			err := edit(s, func(f *contexts.File) (err error) {
				if was, err = f.Get(args[0]); err != nil {
					return exit.With(exit.NotFound, err)
				}
				f.Contexts = maps.Clone(f.Contexts)
				delete(f.Contexts, args[0])
				if f.Current == args[0] {
					f.Current = ""
				}
				return nil
			})
			if err == nil {
				forget(cmd, args[0], was)
			}
			return err
		},
	}
}

func complete(s *session.Session) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		f, _, err := s.Contexts()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Clone(f.Names()), cobra.ShellCompDirectiveNoFileComp
	}
}
