package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/natsperm"
)

// natsCommand is about a NATS server of the operator's.
func natsCommand() *cobra.Command {
	c := &cobra.Command{Use: "nats", Short: "Let readers of events into your NATS server"}
	c.AddCommand(natsCredsCommand())
	return c
}

// natsCredsOptions are the flags of `waybill nats creds`.
type natsCredsOptions struct {
	tenant, user string
	consumers    []string
	seedFile     string
}

func natsCredsCommand() *cobra.Command {
	var o natsCredsOptions
	c := &cobra.Command{
		Use:   "creds",
		Short: "Make the credentials of a client that reads a tenant's events",
		Long: `Makes an nkey for a client that may read the run events of one tenant over NATS, with
durable consumers of its own, and nothing else. The seed goes to --seed-file, and is the
client's; what is printed is an account for the block accounts of the server's configuration,
and holds no secret. The host's account has to export what docs/streams.md says.`,
		Example: `  waybill nats creds --tenant acme --user acme-billing --consumer billing --seed-file acme-billing.nk >> readers.conf`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.tenant, "tenant", "", "whose events may be read; required")
	f.StringVar(&o.user, "user", "", "name of the client, of which its account and its inbox have their names; empty: the tenant")
	f.StringSliceVar(&o.consumers, "consumer", nil, "name of a durable consumer that it may have (repeatable); the server knows it as TENANT=NAME; none: one with the tenant's name")
	f.StringVar(&o.seedFile, "seed-file", "", "file to write the seed of the nkey to; it must not be there yet; required")
	return c
}

func (o natsCredsOptions) run(out io.Writer) error {
	r, err := o.reader()
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
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
		return fmt.Errorf("%w: --seed-file: %w", errUsage, err)
	}
	_, err = f.Write(append(seed, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--seed-file: %w", err)
	}
	_, err = io.WriteString(out, entry(r, public))
	return err
}

func (o natsCredsOptions) reader() (natsperm.Reader, error) {
	r := natsperm.Reader{User: o.user, Tenant: o.tenant}
	if r.User == "" {
		r.User = o.tenant
	}
	if o.tenant == "" {
		return r, errors.New("--tenant: say whose events may be read")
	}
	if o.seedFile == "" {
		return r, errors.New("--seed-file: say where the seed goes")
	}
	if len(o.consumers) == 0 {
		r.Consumers = []string{natsperm.Consumer(o.tenant, "")}
	}
	for _, name := range o.consumers {
		if (natsperm.Reader{User: name, Tenant: o.tenant}).Check() != nil {
			return r, fmt.Errorf("--consumer %q: want letters, digits, _ and -", name)
		}
		r.Consumers = append(r.Consumers, natsperm.Consumer(o.tenant, name))
	}
	return r, r.Check()
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
	const subject = "        %q\n"
	return fmt.Sprintf(`# Reads the events of tenant %s. Inbox prefix: %s. Consumers: %s.
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
  imports: [
%s  ]
}
`, r.Tenant, r.Inbox(), strings.Join(r.Consumers, ", "), r.Account(), public, list(subject, r.Publish()), list(subject, r.Subscribe()),
		list("    {service: {account: "+natsperm.HostAccount+", subject: %q}}\n", r.Imports()))
}
