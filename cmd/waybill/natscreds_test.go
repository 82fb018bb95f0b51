package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/client/subscribe"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// configured are the options of a server with the configuration of docs/streams.md that
// lets in the readers that the command has made credentials for.
func configured(t *testing.T, dir string, entries ...string) *server.Options {
	t.Helper()
	page, err := os.ReadFile("../../docs/streams.md")
	require.NoError(t, err)
	_, accounts, found := strings.Cut(string(page), "```\naccounts {")
	require.True(t, found)
	accounts, _, _ = strings.Cut(accounts, "```")
	t.Setenv("WAYBILL_NATS_PASSWORD", "secret")
	conf := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readers.conf"), []byte(strings.Join(entries, "")), 0o600))
	require.NoError(t, os.WriteFile(conf, []byte("jetstream { store_dir: "+filepath.Join(dir, "js")+" }\naccounts {"+accounts), 0o600))
	opts, err := server.ProcessConfigFile(conf)
	require.NoError(t, err)
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	return opts
}

// begun starts a server.
func begun(t *testing.T, opts *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// asReader connects with the seed that the command wrote.
func asReader(t *testing.T, url, seed, user string) *nats.Conn {
	t.Helper()
	own, err := nats.NkeyOptionFromSeed(seed)
	require.NoError(t, err)
	nc, err := nats.Connect(url, own, nats.CustomInboxPrefix(natsperm.Reader{User: user}.Inbox()), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// written puts a run of one event into the log.
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

func TestNATSCreds_LetAReaderReadItsTenantAndNothingElse(t *testing.T) {
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

	srv := begun(t, configured(t, dir, first, second))
	require.True(t, srv.ReadyForConnections(10*time.Second))
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
		{acme, "acme-billing", "acme", "acme=billing"}, {acme, "acme-billing", "acme", "acme=audit"}, {beta, "beta", "beta", ""},
	} {
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
	reader := natsperm.Reader{User: "acme-billing", Tenant: "acme", Consumers: []string{"acme=billing", "acme=audit"}}
	refusesReader(t, asReader(t, url, acme, reader.User), host)
	written(t, log, "acme", "waits")
	answersStay(t, asReader(t, url, acme, reader.User), host, reader)
}

// Who answers a reader is another server than the one that it is connected to.
func TestNATSCreds_LetAReaderReadAtAnyServerOfACluster(t *testing.T) {
	seed := filepath.Join(t.TempDir(), "seed.nk")
	entry, err := command(t, "", "nats", "creds", "--tenant", "acme", "--consumer", "a,b,c", "--seed-file", seed)
	require.NoError(t, err)
	var (
		servers [3]*server.Server
		routes  []string
		held    []net.Listener
	)
	for range servers {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		routes, held = append(routes, "nats://"+lis.Addr().String()), append(held, lis)
	}
	for i := range servers {
		opts := configured(t, t.TempDir(), entry)
		port := held[i].Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of TCP
		opts.ServerName, opts.Routes = fmt.Sprint("n", i), server.RoutesFromStr(strings.Join(routes, ","))
		opts.Cluster = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port}
		require.NoError(t, held[i].Close()) // the server takes it
		servers[i] = begun(t, opts)
	}
	for _, s := range servers {
		require.True(t, s.ReadyForConnections(30*time.Second))
	}
	host, err := nats.Connect(servers[0].ClientURL(), nats.UserInfo("waybill", "secret"))
	require.NoError(t, err)
	t.Cleanup(host.Close)
	cfg := jetstream.DefaultConfig()
	cfg.Replicas = 3
	var log *jetstream.Log
	require.Eventually(t, func() bool { // a new cluster has to choose its leaders first
		log, err = jetstream.Open(t.Context(), host, cfg)
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
	for _, id := range []string{"one", "two"} {
		written(t, log, "acme", id)
	}
	for i, consumer := range []string{"acme=a", "acme=b", "acme=c"} {
		sub, err := subscribe.Open(t.Context(), asReader(t, servers[i].ClientURL(), seed, "acme"), subscribe.Config{Tenant: "acme", Consumer: consumer})
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
		require.Equal(t, []string{"one", "two"}, got)
	}
}

// refusesReader tries all that acme must not be able to do.
func refusesReader(t *testing.T, nc, host *nats.Conn) {
	t.Helper()
	api, err := js.New(nc)
	require.NoError(t, err)
	own, err := js.New(host)
	require.NoError(t, err)
	consumer := func(name, filter string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := api.CreateConsumer(ctx, subject.Stream, js.ConsumerConfig{Durable: name, FilterSubject: filter, AckPolicy: js.AckExplicitPolicy})
			return err
		}
	}
	// raw asks the server in other words than a client would; it answers an error, or not at all.
	raw := func(at, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			m, err := nc.RequestWithContext(ctx, at, []byte(body))
			if err == nil && strings.Contains(string(m.Data), `"error"`) {
				return js.ErrConsumerCreate
			}
			return err
		}
	}
	create := "$JS.API.CONSUMER.CREATE." + subject.Stream
	for what, try := range map[string]func(context.Context) error{
		"another tenant's events":      consumer("acme=billing", subject.Tenant("beta")),
		"everybody's":                  consumer("acme=billing", subject.All),
		"a consumer that is not named": consumer("acme=other", subject.Tenant("acme")),
		"another tenant's consumer":    consumer("beta", subject.Tenant("acme")),
		"a filter that is another in the request": raw(create+".acme=billing."+subject.Tenant("acme"),
			`{"stream_name":"`+subject.Stream+`","config":{"durable_name":"acme=billing","ack_policy":"explicit","filter_subject":"`+subject.Tenant("beta")+`"}}`),
		"several filters": raw(create+".acme=billing."+subject.Tenant("acme"),
			`{"stream_name":"`+subject.Stream+`","config":{"durable_name":"acme=billing","ack_policy":"explicit","filter_subjects":["`+subject.Tenant("acme")+`","`+subject.Tenant("beta")+`"]}}`),
		"reading from another's consumer": raw("$JS.API.CONSUMER.MSG.NEXT."+subject.Stream+".beta", "1"),
		"the names of everybody's runs":   raw("$JS.API.STREAM.INFO."+subject.Stream, `{"subjects_filter":">"}`),
		"a message by its position":       raw("$JS.API.STREAM.MSG.GET."+subject.Stream, `{"seq":1}`),
		"a message, directly":             raw("$JS.API.DIRECT.GET."+subject.Stream, `{"seq":1}`),
		"writing":                         raw(subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}.Frame(subject.Start), "{}"),
		"deleting the log":                raw("$JS.API.STREAM.DELETE."+subject.Stream, ""),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		require.Error(t, try(ctx), what)
		cancel()
	}
	for _, at := range []string{subject.Tenant("beta"), subject.All, ">", "_INBOX_beta.>", subject.Tenant("acme")} {
		sub, err := nc.SubscribeSync(at)
		require.NoError(t, err)
		require.NoError(t, host.Publish(strings.TrimSuffix(strings.TrimSuffix(at, ">"), ".")+".w.r.step", []byte("[]")))
		require.NoError(t, host.Flush())
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err = sub.NextMsgWithContext(ctx)
		cancel()
		require.Error(t, err, at)
	}
	s, err := own.Stream(t.Context(), subject.Stream)
	require.NoError(t, err, "the log is there")
	_, err = s.Consumer(t.Context(), "beta")
	require.NoError(t, err, "and the other's consumer")
}

// answersStay asks for everything that a reader may ask for, and to be answered where it may
// not write: in another tenant's log, in the host's buckets, at another's inbox.
func answersStay(t *testing.T, nc, host *nats.Conn, r natsperm.Reader) {
	t.Helper()
	own, err := js.New(host)
	require.NoError(t, err)
	_, err = own.CreateKeyValue(t.Context(), js.KeyValueConfig{Bucket: "bucket"})
	require.NoError(t, err)
	inbox, err := host.SubscribeSync("_INBOX_beta.x")
	require.NoError(t, err)
	require.NoError(t, host.Flush())
	messages := func(stream string) uint64 {
		s, err := own.Stream(t.Context(), stream)
		require.NoError(t, err)
		return s.CachedInfo().State.Msgs
	}
	before := messages(subject.Stream)
	for _, at := range r.Imports() {
		if strings.Contains(at, ".DELETE.") {
			continue // of its own consumer, which is to have something to answer
		}
		for _, answer := range []string{
			subject.Run{Tenant: "beta", WorkflowID: "w", RunID: "forged"}.Frame(subject.Start), "$KV.bucket.key", "_INBOX_beta.x",
			"$JS.API.CONSUMER.DELETE." + subject.Stream + ".beta",
		} {
			require.NoError(t, nc.PublishRequest(at, answer, nil))
		}
	}
	require.NoError(t, nc.Flush())
	_, err = inbox.NextMsg(200 * time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout)
	require.Equal(t, before, messages(subject.Stream))
	require.Zero(t, messages("KV_bucket"))
	_, err = own.Consumer(t.Context(), subject.Stream, "beta")
	require.NoError(t, err)
}

func TestNATSCreds_RefusesWhatItCannotMake(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "seed.nk")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for want, args := range map[string][]string{
		"--tenant":           {"--seed-file", file + "1"},
		"--seed-file: say":   {"--tenant", "acme"},
		"a.b":                {"--tenant", "a.b", "--seed-file", file + "1"},
		"--consumer \"a=b\"": {"--tenant", "acme", "--consumer", "a=b", "--seed-file", file + "1"},
		"exists":             {"--tenant", "acme", "--seed-file", file},
	} {
		_, err := command(t, "", append([]string{"nats", "creds"}, args...)...)
		require.ErrorIs(t, err, errUsage)
		require.ErrorContains(t, err, want)
	}
}
