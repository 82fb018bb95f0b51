package services

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/client/subscribe"
	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/natsperm/natspermtest"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/test/harness"
)

// keys creates a key pair and returns it with its public key.
func keys(t *testing.T, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
	t.Helper()
	pair, err := create()
	require.NoError(t, err)
	public, err := pair.PublicKey()
	require.NoError(t, err)
	return pair, public
}

// operated is a server in operator mode: permissions are in signed JWTs, without passwords. It has
// an account for streams and one for a reader.
type operated struct {
	url, dir        string
	account, reader nkeys.KeyPair
}

// acme reads the events of its tenant.
var acme = natsperm.Reader{User: "acme", Tenant: "acme", Consumers: []string{subject.DefaultConsumer}}

func operate(t *testing.T) operated {
	t.Helper()
	needsProcesses(t)
	operator, operatorID := keys(t, nkeys.CreateOperator)
	_, systemID := keys(t, nkeys.CreateAccount)
	account, accountID := keys(t, nkeys.CreateAccount)
	reader, readerID := keys(t, nkeys.CreateAccount)
	resolver := &server.MemAccResolver{}
	for name, id := range map[string]string{"system": systemID, "waybill": accountID, acme.Account(): readerID} {
		claims := jwt.NewAccountClaims(id)
		claims.Name = name
		switch id {
		case accountID:
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
			for _, e := range natsperm.Exports() {
				export := &jwt.Export{Subject: jwt.Subject(e.Subject), Type: jwt.Service, ResponseThreshold: e.Within}
				if e.Streamed {
					export.ResponseType = jwt.ResponseTypeStream
				}
				claims.Exports.Add(export)
			}
		case readerID:
			claims.Limits.Payload, claims.Limits.Conn, claims.Limits.Subs = natsperm.MaxPayload, natsperm.MaxConnections, natsperm.MaxSubscriptions
			for _, s := range acme.Imports() {
				claims.Imports.Add(&jwt.Import{Account: accountID, Subject: jwt.Subject(s), Type: jwt.Service})
			}
		}
		token, err := claims.Encode(operator)
		require.NoError(t, err)
		require.NoError(t, resolver.Store(id, token))
	}
	claims := jwt.NewOperatorClaims(operatorID)
	claims.SystemAccount = systemID
	token, err := claims.Encode(operator)
	require.NoError(t, err)
	trusted, err := jwt.DecodeOperatorClaims(token)
	require.NoError(t, err)
	srv := natslinktest.Serve(t, &server.Options{
		JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20,
		TrustedOperators: []*jwt.OperatorClaims{trusted}, AccountResolver: resolver, SystemAccount: systemID,
	})
	return operated{srv.ClientURL(), t.TempDir(), account, reader}
}

// credentials writes the credentials file of a user and returns its name.
func (o operated) credentials(t *testing.T, account nkeys.KeyPair, name string, may jwt.Permissions) string {
	t.Helper()
	user, userID := keys(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(userID)
	claims.Name, claims.Permissions = name, may
	token, err := claims.Encode(account)
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	file, err := jwt.FormatUserConfig(token, seed)
	require.NoError(t, err)
	path := filepath.Join(o.dir, name+".creds")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	return path
}

// read connects a reader of one tenant's events, with the permissions that `waybill nats creds`
// prints for a server without an operator.
func (o operated) read(t *testing.T) *nats.Conn {
	t.Helper()
	file := o.credentials(t, o.reader, acme.User, jwt.Permissions{Pub: jwt.Permission{Allow: acme.Publish()}, Sub: jwt.Permission{Allow: acme.Subscribe()}})
	nc, err := nats.Connect(o.url, nats.UserCredentials(file), nats.PermissionErrOnSubscribe(true), nats.CustomInboxPrefix(acme.Inbox()))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func TestOperator_AHostOfFiveServicesConnectsByItsCredentials(t *testing.T) {
	t.Parallel()
	o := operate(t)
	_, err := nats.Connect(o.url)
	require.ErrorIs(t, err, nats.ErrAuthorization, "credentials are required")
	h := harness.ServeAll(t, []string{"--nats", o.url, "--nats-creds", o.credentials(t, o.account, "host", jwt.Permissions{})},
		"--api-key", "key-acme=acme:*", "--api-key", "key-beta=beta:*")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := map[string][]string{} // event types of each tenant's run
	runs := map[string]string{}
	for _, tenant := range []string{"acme", "beta"} {
		c := h.Client("key-" + tenant)
		a, err := c.Do(ctx, "POST", "/v1/workflows", workflow)
		require.NoError(t, err)
		require.Equal(t, 201, a.Status, "%s", a.Body)
		a, err = c.Do(ctx, "POST", "/v1/runs", `{"workflowId":"one"}`)
		require.NoError(t, err)
		var created struct{ RunID string }
		require.NoError(t, a.JSON(&created))
		events, err := c.Finish(ctx, created.RunID)
		require.NoError(t, err)
		for _, e := range events {
			ended[tenant] = append(ended[tenant], e.Type)
		}
		require.Equal(t, "run.completed", ended[tenant][len(events)-1])
		runs[tenant] = created.RunID
	}

	// A reader gets the events of its tenant, and cannot reach those of another.
	host, err := nats.Connect(o.url, nats.UserCredentials(o.credentials(t, o.account, "maker", jwt.Permissions{})))
	require.NoError(t, err)
	t.Cleanup(host.Close)
	api, err := js.New(host)
	require.NoError(t, err)
	for _, tenant := range []string{"acme", "beta"} {
		require.NoError(t, natsperm.Consumer{Tenant: tenant, Name: subject.DefaultConsumer}.Make(ctx, api))
	}
	nc := o.read(t)
	s, err := subscribe.Open(ctx, nc, subscribe.Config{Tenant: "acme"})
	require.NoError(t, err)
	read, stop := context.WithCancel(ctx)
	defer stop()
	var types []string
	require.NoError(t, s.Run(read, func(_ context.Context, e subscribe.Event) error {
		require.Equal(t, runs["acme"], e.RunID)
		if types = append(types, string(e.Type)); len(types) == len(ended["acme"]) {
			stop()
		}
		return nil
	}))
	require.Equal(t, ended["acme"], types)
	a, err := h.Client("key-acme").Do(ctx, "POST", "/v1/runs", `{"workflowId":"one"}`)
	require.NoError(t, err)
	require.Equal(t, 201, a.Status, "%s", a.Body)
	var created struct{ RunID string }
	require.NoError(t, a.JSON(&created))
	_, err = h.Client("key-acme").Finish(ctx, created.RunID)
	require.NoError(t, err)
	natspermtest.Fenced(t, nc, api, acme, "beta")
}

func TestOperator_CredentialsOfAnUnknownAccountEndTheService(t *testing.T) {
	t.Parallel()
	o := operate(t)
	stranger := o
	stranger.account, _ = keys(t, nkeys.CreateAccount)
	h := harness.Begin(t, "eventlog", "--nats", o.url, "--nats-creds", stranger.credentials(t, stranger.account, "host", jwt.Permissions{}), "--data-dir", t.TempDir())
	require.Equal(t, 1, h.Ended().ExitCode(), h.Log())
	h.AwaitLog("Authorization")
}
