package natsd

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/protocol/subject"
)

// reader returns the consumer and permissions of a user.
func (u User) reader() natsperm.Reader {
	return natsperm.Reader{User: u.Name, Tenant: u.Tenant, Consumers: []string{subject.DefaultConsumer}}
}

// admit adds the users, each in an own account. The host uses the global account.
func admit(opts *server.Options, users []User) error {
	if len(users) == 0 {
		return nil
	}
	// The server accepts account limits only as configuration text.
	var words strings.Builder
	for _, u := range users {
		fmt.Fprintf(&words, "%s: {limits: %s}\n", u.reader().Account(), natsperm.Limits())
	}
	limited := &server.Options{}
	if err := limited.ProcessConfigString("accounts {\n" + words.String() + "}"); err != nil {
		return fmt.Errorf("accounts of readers: %w", err)
	}
	accounts := map[string]*server.Account{}
	for _, a := range limited.Accounts {
		accounts[a.GetName()] = a
	}
	opts.Accounts = limited.Accounts
	for _, u := range users {
		r := u.reader()
		opts.Users = append(opts.Users, &server.User{
			Username: u.Name, Password: u.Password, Account: accounts[r.Account()],
			Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: r.Publish()},
				Subscribe: &server.SubjectPermission{Allow: r.Subscribe()},
			},
		})
	}
	return nil
}

// connectAccounts exports the subjects of natsperm from the host's account to the users' accounts.
func connectAccounts(srv *server.Server, users []User) error {
	if len(users) == 0 {
		return nil
	}
	host := srv.GlobalAccount()
	for _, e := range natsperm.Exports() {
		kind := server.Singleton
		if e.Streamed {
			kind = server.Streamed
		}
		if err := host.AddServiceExportWithResponse(e.Subject, kind, nil); err != nil {
			return fmt.Errorf("offer %s to readers: %w", e.Subject, err)
		}
		if err := host.SetServiceExportResponseThreshold(e.Subject, e.Within); err != nil {
			return fmt.Errorf("offer %s to readers: %w", e.Subject, err)
		}
	}
	for _, u := range users {
		r := u.reader()
		account, err := srv.LookupAccount(r.Account())
		if err != nil {
			return fmt.Errorf("account of %s: %w", u.Name, err)
		}
		for _, s := range r.Imports() {
			if err := account.AddServiceImport(host, s, s); err != nil {
				return fmt.Errorf("let %s ask for %s: %w", u.Name, s, err)
			}
		}
	}
	return nil
}
