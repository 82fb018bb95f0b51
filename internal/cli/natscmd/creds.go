// Package natscmd has the commands that give clients read access to events over NATS.
package natscmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/protocol/subject"
)

// natsCredsOptions are the flags of `waybill nats creds`.
type natsCredsOptions struct {
	tenant, user string
	consumers    []string
	seedFile     string
}

// Creds is `waybill nats creds`.
func Creds() *cobra.Command {
	var o natsCredsOptions
	c := &cobra.Command{
		Use:   "creds",
		Short: "Create credentials for a client that reads a tenant's events",
		Long: `Creates an nkey for a client that may only read the run events of one tenant over NATS, from
durable consumers created with "waybill nats consumer create". The seed is written to --seed-file
for the client. The printed account has no secrets; add it to the accounts block of the server's
configuration. The host's account needs the exports listed in docs/streams.md.`,
		Example: `  waybill nats creds --tenant acme --user acme-billing --consumer billing --seed-file acme-billing.nk >> readers.conf`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.tenant, "tenant", "", "tenant whose events the client may read; required")
	f.StringVar(&o.user, "user", "", "name of the client, part of the names of its account and inbox; empty uses the tenant")
	f.StringSliceVar(&o.consumers, "consumer", []string{subject.DefaultConsumer}, "name of a durable consumer the client may read from (repeatable), called TENANT=NAME on the server")
	f.StringVar(&o.seedFile, "seed-file", "", "new file for the seed of the nkey; required")
	return c
}

func (o natsCredsOptions) run(out io.Writer) error {
	r, err := o.reader()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return fmt.Errorf("make an nkey: %w", err)
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil {
		return fmt.Errorf("make an nkey: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return fmt.Errorf("make an nkey: %w", err)
	}
	f, err := os.OpenFile(o.seedFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return exit.Usagef("--seed-file: %w", err)
	}
	_, err = f.Write(append(seed, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--seed-file: %w", err)
	}
	_, err = io.WriteString(out, entry(r, public))
	return err
}

func (o natsCredsOptions) reader() (natsperm.Reader, error) {
	r := natsperm.Reader{User: o.user, Tenant: o.tenant, Consumers: o.consumers}
	if r.User == "" {
		r.User = o.tenant
	}
	if o.tenant == "" {
		return r, errors.New("--tenant is required")
	}
	if o.seedFile == "" {
		return r, errors.New("--seed-file is required")
	}
	for _, f := range []struct{ flag, value string }{{"tenant", o.tenant}, {"user", r.User}} {
		if !subject.Token(f.value) {
			return r, notToken(f.flag, f.value)
		}
	}
	for _, name := range o.consumers {
		if !subject.Token(name) {
			return r, notToken("consumer", name)
		}
	}
	return r, nil
}

// notToken returns the error for a value that is not a valid token of a subject.
func notToken(flag, value string) error {
	return fmt.Errorf("--%s %q: use letters, digits, _ and - only", flag, value)
}

// entry returns the account for the server's configuration.
func entry(r natsperm.Reader, public string) string {
	list := func(form string, subjects []string) string {
		var b strings.Builder
		for _, s := range subjects {
			fmt.Fprintf(&b, form, s)
		}
		return b.String()
	}
	const allowed = "        %q\n"
	return fmt.Sprintf(`# Reads the events of tenant %s from its consumers %s. Inbox prefix: %s.
%s: {
  users: [{
    nkey: %s
    permissions: {
      publish: {allow: [
%s      ]}
      subscribe: {allow: [
%s      ]}
    }
  }]
  limits: %s
  imports: [
%s  ]
}
`, r.Tenant, strings.Join(r.Consumers, ", "), r.Inbox(), r.Account(), public, list(allowed, r.Publish()), list(allowed, r.Subscribe()),
		natsperm.Limits(), list("    {service: {account: "+natsperm.HostAccount+", subject: %q}}\n", r.Imports()))
}
