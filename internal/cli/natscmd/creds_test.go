package natscmd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/client/subscribe"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/natsperm/natspermtest"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// configured returns the options of a server with the configuration of docs/streams.md and the
// accounts that the command printed.
func configured(t *testing.T, dir string, entries ...string) *server.Options {
	t.Helper()
	page, err := os.ReadFile("../../../docs/streams.md")
	require.NoError(t, err)
	_, accounts, found := strings.Cut(string(page), "```\naccounts {")
	require.True(t, found)
	accounts, _, _ = strings.Cut(accounts, "```")
	exports := regexp.MustCompile(`\{service: "(.*?)"(, response_type: stream)?, response_threshold: "(\w+)"\}`).FindAllStringSubmatch(accounts, -1)
	require.Len(t, exports, len(natsperm.Exports()), "the page exports what natsperm lists")
	for i, e := range natsperm.Exports() {
		within, err := time.ParseDuration(exports[i][3])
		require.NoError(t, err)
		require.Equal(t, natsperm.Export{Subject: exports[i][1], Streamed: exports[i][2] != "", Within: within}, e)
	}
	t.Setenv("WAYBILL_NATS_PASSWORD", "secret")
	conf := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readers.conf"), []byte(strings.Join(entries, "")), 0o600))
	require.NoError(t, os.WriteFile(conf, []byte("jetstream { store_dir: "+filepath.Join(dir, "js")+" }\naccounts {"+accounts), 0o600))
	opts, err := server.ProcessConfigFile(conf)
	require.NoError(t, err)
	opts.Port = server.RANDOM_PORT
	return opts
}

// asReader connects with the seed written by the command.
func asReader(t *testing.T, url, seed, user string) *nats.Conn {
	t.Helper()
	own, err := nats.NkeyOptionFromSeed(seed)
	require.NoError(t, err)
	nc, err := nats.Connect(url, own, nats.PermissionErrOnSubscribe(true), nats.CustomInboxPrefix(natsperm.Reader{User: user}.Inbox()), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// written appends a run of one event to the log.
func written(t *testing.T, log *jetstream.Log, tenant, id string) {
	t.Helper()
	run := subject.Run{Tenant: tenant, WorkflowID: "w", RunID: id}
	first := frame.NewStart(run, []byte(`{}`))
	pos, err := log.Append(t.Context(), first, 0)
	require.NoError(t, err)
	first.Pos = pos
	d := wire.Draft{Type: wire.EventRunStarted, Payload: []byte(`{}`)}
	_, err = log.Append(t.Context(), frame.New(run, subject.Step, first.Head(), []wire.Event{d.Place(id, 0, time.Now())}), pos)
	require.NoError(t, err)
}

func TestNATSCreds_AllowOnlyReadsOfTheTenant(t *testing.T) {
	dir := t.TempDir()
	acme, beta := filepath.Join(dir, "acme.nk"), filepath.Join(dir, "beta.nk")
	first, err := command(t, "", "nats", "creds", "--tenant", "acme", "--user", "acme-billing", "--consumer", "billing,audit", "--seed-file", acme)
	require.NoError(t, err)
	second, err := command(t, "", "nats", "creds", "--tenant", "beta", "--seed-file", beta)
	require.NoError(t, err)
	seed, err := os.ReadFile(acme)
	require.NoError(t, err)
	require.NotContains(t, first, strings.TrimSpace(string(seed)))
	info, err := os.Stat(acme)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	srv := natslinktest.Serve(t, configured(t, dir, first, second))
	url := srv.ClientURL()
	host, err := nats.Connect(url, nats.UserInfo("waybill", "secret"))
	require.NoError(t, err)
	t.Cleanup(host.Close)
	log, err := jetstream.Open(t.Context(), host, jetstream.DefaultConfig())
	require.NoError(t, err)
	for _, tenant := range []string{"beta", "acme", "beta"} {
		written(t, log, tenant, tenant+"-"+time.Now().Format("150405.000000000")[7:])
	}

	for _, r := range []struct{ seed, user, tenant, consumer string }{
		{acme, "acme-billing", "acme", "billing"},
		{acme, "acme-billing", "acme", "audit"},
		{beta, "beta", "beta", subject.DefaultConsumer},
	} {
		createConsumer(t, r.tenant, r.consumer, asHost(url)...)
		sub, err := subscribe.Open(t.Context(), asReader(t, url, r.seed, r.user), subscribe.Config{Tenant: r.tenant, Consumer: r.consumer})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		require.NoError(t, sub.Run(ctx, func(_ context.Context, e subscribe.Event) error {
			require.Equal(t, r.tenant, e.Run.Tenant)
			cancel()
			return nil
		}))
		require.ErrorIs(t, ctx.Err(), context.Canceled, "it read an event")
	}
	written(t, log, "acme", "waits")
	api, err := js.New(host)
	require.NoError(t, err)
	reader := natsperm.Reader{User: "acme-billing", Tenant: "acme", Consumers: []string{"billing", "audit"}}
	natspermtest.Fenced(t, asReader(t, url, acme, reader.User), api, reader, "beta")
}

// asHost returns the flags that connect with the host's credentials.
func asHost(url string) []string {
	return []string{"--nats", strings.Replace(url, "//", "//waybill:secret@", 1)}
}

// createConsumer creates a tenant's consumer with the command.
func createConsumer(t *testing.T, tenant, name string, flags ...string) {
	t.Helper()
	_, err := command(t, "", append([]string{
		"nats", "consumer", "create", "--tenant", tenant, "--name", name,
	}, flags...)...)
	require.NoError(t, err)
}

// A new account takes two reloads of the configuration: the server creates it in the first, and
// grants its requests in the second.
func TestNATSCreds_WorkAfterReloadsOfTheServer(t *testing.T) {
	dir := t.TempDir()
	opts := configured(t, dir)
	opts.ConfigFile = filepath.Join(dir, "nats.conf")
	srv := natslinktest.Serve(t, opts)
	host, err := nats.Connect(srv.ClientURL(), nats.UserInfo("waybill", "secret"))
	require.NoError(t, err)
	t.Cleanup(host.Close)
	log, err := jetstream.Open(t.Context(), host, jetstream.DefaultConfig())
	require.NoError(t, err)
	written(t, log, "acme", "one")
	createConsumer(t, "acme", subject.DefaultConsumer, asHost(srv.ClientURL())...)

	seed := filepath.Join(dir, "acme.nk")
	entry, err := command(t, "", "nats", "creds", "--tenant", "acme", "--seed-file", seed)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readers.conf"), []byte(entry), 0o600))
	for range 2 {
		again, err := server.ProcessConfigFile(opts.ConfigFile)
		require.NoError(t, err)
		again.Host, again.Port, again.NoLog, again.NoSigs = opts.Host, srv.Addr().(*net.TCPAddr).Port, true, true //nolint:forcetypeassert // of TCP
		require.NoError(t, srv.ReloadOptions(again))
	}
	_, err = subscribe.Open(t.Context(), asReader(t, srv.ClientURL(), seed, "acme"), subscribe.Config{Tenant: "acme"})
	require.NoError(t, err)
}

// In a cluster, the server with the consumer's leader answers, not the one the reader connects to.
func TestNATSCreds_WorkOnAnyServerOfACluster(t *testing.T) {
	seed := filepath.Join(t.TempDir(), "seed.nk")
	entry, err := command(t, "", "nats", "creds", "--tenant", "acme", "--consumer", "a,b,c", "--seed-file", seed)
	require.NoError(t, err)
	servers := natslinktest.ClusterOf(t, func() *server.Options { return configured(t, t.TempDir(), entry) })
	host, err := nats.Connect(servers[0].ClientURL(), nats.UserInfo("waybill", "secret"))
	require.NoError(t, err)
	t.Cleanup(host.Close)
	cfg := jetstream.DefaultConfig()
	cfg.Replicas = 3
	var log *jetstream.Log
	require.Eventually(t, func() bool { // a new cluster elects its leaders first
		log, err = jetstream.Open(t.Context(), host, cfg)
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
	for _, id := range []string{"one", "two"} {
		written(t, log, "acme", id)
	}
	consumers := []string{"a", "b", "c"}
	for i, consumer := range consumers {
		createConsumer(t, "acme", consumer, asHost(servers[i].ClientURL())...)
		nc := asReader(t, servers[i].ClientURL(), seed, "acme")
		sub, err := subscribe.Open(t.Context(), nc, subscribe.Config{Tenant: "acme", Consumer: consumer})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var got []string
		require.NoError(t, sub.Run(ctx, func(_ context.Context, e subscribe.Event) error {
			if got = append(got, e.RunID); len(got) == 2 {
				cancel()
			}
			return nil
		}))
		cancel()
		nc.Close()
		require.Equal(t, []string{"one", "two"}, got)
	}
	createConsumer(t, "beta", subject.DefaultConsumer, asHost(host.ConnectedUrl())...)
	api, err := js.New(host)
	require.NoError(t, err)
	for i, srv := range servers {
		written(t, log, "acme", fmt.Sprint("waits-", i))
		reader := natsperm.Reader{User: "acme", Tenant: "acme", Consumers: []string{consumers[i]}}
		natspermtest.Fenced(t, asReader(t, srv.ClientURL(), seed, "acme"), api, reader, "beta")
	}
}

func TestNATSConsumer_CreatesAndDeletes(t *testing.T) {
	srv := natslinktest.Serve(t, configured(t, t.TempDir()))
	host := asHost(srv.ClientURL())
	nc, err := nats.Connect(host[1])
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = command(t, "", append([]string{"nats", "consumer", "create", "--tenant", "acme"}, host...)...)
	require.Equal(t, exit.NotFound, exit.Status(err), "no log: %v", err)
	log, err := jetstream.Open(t.Context(), nc, jetstream.DefaultConfig())
	require.NoError(t, err)
	written(t, log, "acme", "before")

	api, err := js.New(nc)
	require.NoError(t, err)
	createConsumer(t, "acme", "billing", append(host, "--new", "--ack-wait", "2m", "--max-pending", "8")...)
	is, err := api.Consumer(t.Context(), subject.Stream, "acme=billing")
	require.NoError(t, err)
	cfg := is.CachedInfo().Config
	require.Equal(t, subject.Tenant("acme"), cfg.FilterSubject)
	require.Equal(t, js.DeliverNewPolicy, cfg.DeliverPolicy)
	require.Equal(t, 2*time.Minute, cfg.AckWait)
	require.Equal(t, 8, cfg.MaxAckPending)
	require.Equal(t, time.Minute, cfg.MaxRequestExpires)
	createConsumer(t, "acme", "billing", host...)
	is, err = api.Consumer(t.Context(), subject.Stream, "acme=billing")
	require.NoError(t, err)
	require.Equal(t, cfg, is.CachedInfo().Config, "it is not changed")

	// A push consumer was not created by this command and is not changed.
	_, err = api.CreatePushConsumer(t.Context(), subject.Stream, js.ConsumerConfig{
		Durable:        "acme=pushed",
		FilterSubject:  subject.Tenant("acme"),
		DeliverSubject: "anywhere",
	})
	require.NoError(t, err)
	_, err = api.CreateConsumer(t.Context(), subject.Stream, js.ConsumerConfig{
		Durable:   "acme=wide",
		AckPolicy: js.AckExplicitPolicy,
	})
	require.NoError(t, err)
	for _, name := range []string{"pushed", "wide"} {
		_, err = command(t, "", append([]string{
			"nats", "consumer", "create", "--tenant", "acme", "--name", name,
		}, host...)...)
		require.Equal(t, exit.Refused, exit.Status(err), "%s: %v", name, err)
		_, err = command(t, "", append([]string{
			"nats", "consumer", "delete", "--tenant", "acme", "--name", name,
		}, host...)...)
		require.NoError(t, err)
		createConsumer(t, "acme", name, host...)
	}
	for want, args := range map[string][]string{
		"--nats is required": {"--tenant", "acme"},
		"--tenant":           host,
		`--name "a=b"`:       append(host, "--tenant", "acme", "--name", "a=b"),
		"--ack-wait -1s":     append(host, "--tenant", "acme", "--ack-wait", "-1s"),
		"--ack-wait 0s":      append(host, "--tenant", "acme", "--ack-wait", "0s"),
		"--max-pending -1":   append(host, "--tenant", "acme", "--max-pending", "-1"),
		"--max-pending 0":    append(host, "--tenant", "acme", "--max-pending", "0"),
	} {
		_, err = command(t, "", append([]string{"nats", "consumer", "create"}, args...)...)
		require.ErrorIs(t, err, exit.ErrUsage)
		require.ErrorContains(t, err, want)
	}
	_, err = command(t, "", append([]string{"nats", "consumer", "delete", "--tenant", "beta"}, host...)...)
	require.Equal(t, exit.NotFound, exit.Status(err), "%v", err)
}

func TestNATSCreds_RejectsInvalidFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "seed.nk")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for want, args := range map[string][]string{
		"--tenant":                {"--seed-file", file + "1"},
		"--seed-file is required": {"--tenant", "acme"},
		"a.b":                     {"--tenant", "a.b", "--seed-file", file + "1"},
		"--consumer \"a=b\"":      {"--tenant", "acme", "--consumer", "a=b", "--seed-file", file + "1"},
		"exists":                  {"--tenant", "acme", "--seed-file", file},
	} {
		_, err := command(t, "", append([]string{"nats", "creds"}, args...)...)
		require.ErrorIs(t, err, exit.ErrUsage)
		require.ErrorContains(t, err, want)
	}
}
