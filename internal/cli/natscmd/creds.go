// Package natscmd has the commands that let readers of events into a NATS server.
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

// Creds makes the credentials of a reader.
func Creds() *cobra.Command {
	var o natsCredsOptions
	c := &cobra.Command{
		Use:   "creds",
		Short: "Make the credentials of a client that reads a tenant's events",
		Long: `Makes an nkey for a client that may read the run events of one tenant over NATS, from
durable consumers that "waybill nats consumer create" makes, and nothing else. The seed goes to
--seed-file, and is the client's; what is printed is an account for the block accounts of the
server's configuration, and holds no secret. The host's account has to export what
docs/streams.md says.`,
		Example: `  waybill nats creds --tenant acme --user acme-billing --consumer billing --seed-file acme-billing.nk >> readers.conf`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.tenant, "tenant", "", "whose events may be read; required")
	f.StringVar(&o.user, "user", "", "name of the client, of which its account and its inbox have their names; empty: the tenant")
	f.StringSliceVar(&o.consumers, "consumer", []string{subject.DefaultConsumer}, "name of a durable consumer of the tenant's that it may read from (repeatable); the server knows it as TENANT=NAME")
	f.StringVar(&o.seedFile, "seed-file", "", "file to write the seed of the nkey to; it must not be there yet; required")
	return c
}

func (o natsCredsOptions) run(out io.Writer) error {
	r, err := o.reader()
	if err != nil {
		return fmt.Errorf("%w: %w", exit.ErrUsage, err)
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
		return fmt.Errorf("%w: --seed-file: %w", exit.ErrUsage, err)
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
		return r, errors.New("--tenant: say whose events may be read")
	}
	if o.seedFile == "" {
		return r, errors.New("--seed-file: say where the seed goes")
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

// notToken is the error of a flag whose value cannot be a part of a subject.
func notToken(flag, value string) error {
	return fmt.Errorf("--%s %q: want letters, digits, _ and -", flag, value)
}

// entry is that of the server's configuration.
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
