package main

import (
	"context"
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

// letIn is a server that lets in the host and the readers that the command has made
// credentials for; seeds are theirs.
func letIn(t *testing.T, dir string, entries ...string) (url string) {
	t.Helper()
	conf := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(conf, []byte("jetstream { store_dir: "+filepath.Join(dir, "js")+" }\nauthorization { users: [\n{user: host, password: secret}\n"+
		strings.Join(entries, "")+"] }\n"), 0o600))
	opts, err := server.ProcessConfigFile(conf)
	require.NoError(t, err)
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(10*time.Second))
	return s.ClientURL()
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
	t.Parallel()
	dir := t.TempDir()
	acme, beta := filepath.Join(dir, "acme.nk"), filepath.Join(dir, "beta.nk")
	first, err := command(t, "", "nats", "creds", "--tenant", "acme", "--consumer", "billing,audit", "--seed-file", acme)
	require.NoError(t, err)
	second, err := command(t, "", "nats", "creds", "--tenant", "beta", "--seed-file", beta)
	require.NoError(t, err)
	seed, err := os.ReadFile(acme)
	require.NoError(t, err)
	require.NotContains(t, first, strings.TrimSpace(string(seed)))
	info, err := os.Stat(acme)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	url := letIn(t, dir, first, second)
	host, err := nats.Connect(url, nats.UserInfo("host", "secret"))
	require.NoError(t, err)
	t.Cleanup(host.Close)
	log, err := jetstream.Open(t.Context(), host, jetstream.DefaultConfig())
	require.NoError(t, err)
	for _, tenant := range []string{"beta", "acme", "beta"} {
		written(t, log, tenant, tenant+"-"+time.Now().Format("150405.000000000")[7:])
	}

	for _, r := range []struct{ seed, tenant, consumer string }{{acme, "acme", "acme=billing"}, {acme, "acme", "acme=audit"}, {beta, "beta", ""}} {
		sub, err := subscribe.Open(t.Context(), asReader(t, url, r.seed, r.tenant), subscribe.Config{Tenant: r.tenant, Consumer: r.consumer})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		require.NoError(t, sub.Run(ctx, func(_ context.Context, e subscribe.Event) error {
			require.Equal(t, r.tenant, e.Run.Tenant)
			cancel()
			return nil
		}))
		require.ErrorIs(t, ctx.Err(), context.Canceled, "it read an event")
	}
	refusesReader(t, asReader(t, url, acme, "acme"), host)
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
