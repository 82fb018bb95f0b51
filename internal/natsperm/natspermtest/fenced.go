// Package natspermtest attempts, on any NATS server, what a reader of events must not be able to
// do.
package natspermtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/protocol/subject"
)

// quiet is the wait to conclude that nothing arrives. The server drops most rejected requests
// without an answer.
const quiet = 300 * time.Millisecond

// worker is a consumer that represents the host's own.
const worker = "worker"

// fence holds the connections of the attempts.
type fence struct {
	t *testing.T
	// nc is the reader's connection, r the reader, other a tenant that is not the reader's.
	nc    *nats.Conn
	r     natsperm.Reader
	other string
	host  js.JetStream
}

// Fenced attempts as a reader, on its connection nc, to read another tenant's data, and to affect
// the log, the host's buckets, its queue or other readers. host belongs to the log's account. The
// log has unread frames of the reader's tenant; other is a tenant with a consumer. nc was created
// with nats.PermissionErrOnSubscribe.
func Fenced(t *testing.T, nc *nats.Conn, host js.JetStream, r natsperm.Reader, other string) {
	t.Helper()
	f := fence{t: t, nc: nc, r: r, other: other, host: host}
	_, err := host.CreateOrUpdateKeyValue(t.Context(), js.KeyValueConfig{Bucket: "bucket"})
	require.NoError(t, err)
	_, err = host.CreateOrUpdateConsumer(t.Context(), subject.Stream, js.ConsumerConfig{
		Durable: worker, FilterSubjects: subject.Queue(), AckPolicy: js.AckExplicitPolicy,
	})
	require.NoError(t, err)
	inbox, err := host.Conn().SubscribeSync("_INBOX_" + other + ".x")
	require.NoError(t, err)
	require.NoError(t, host.Conn().Flush())
	// In a cluster the consumer's leader may not have the latest frames yet.
	require.Eventually(t, func() bool { return f.state().waiting == f.work() }, 30*time.Second, 10*time.Millisecond)
	holds := func(tries ...func()) {
		t.Helper()
		before := f.state()
		for _, try := range tries {
			try()
		}
		_, err := inbox.NextMsg(quiet)
		require.ErrorIs(t, err, nats.ErrTimeout)
		require.Equal(t, before, f.state())
	}
	holds(f.asks, f.listens, f.isAnsweredElsewhere, f.isTracedElsewhere)
	// If its consumers did not exist, it could create them with any settings.
	for _, name := range r.Consumers {
		err := natsperm.Consumer{Tenant: r.Tenant, Name: name}.Delete(t.Context(), host)
		require.True(t, err == nil || errors.Is(err, js.ErrConsumerNotFound), err)
	}
	holds(f.asks)
	f.floods()
}

// state is everything that a reader must not change.
type state struct {
	frames, values  uint64
	consumers       []string
	handed, waiting uint64
}

func (f fence) state() (s state) {
	f.t.Helper()
	log, err := f.host.Stream(f.t.Context(), subject.Stream)
	require.NoError(f.t, err)
	s.frames = log.CachedInfo().State.LastSeq
	bucket, err := f.host.Stream(f.t.Context(), "KV_bucket")
	require.NoError(f.t, err)
	s.values = bucket.CachedInfo().State.LastSeq
	names := log.ConsumerNames(f.t.Context())
	for name := range names.Name() {
		s.consumers = append(s.consumers, name)
	}
	require.NoError(f.t, names.Err())
	slices.Sort(s.consumers)
	require.Contains(f.t, s.consumers, subject.Consumer(f.other, subject.DefaultConsumer))
	w, err := log.Consumer(f.t.Context(), worker)
	require.NoError(f.t, err)
	s.handed, s.waiting = w.CachedInfo().Delivered.Consumer, w.CachedInfo().NumPending
	return s
}

// work returns the number of frames in the log for the worker.
func (f fence) work() (n uint64) {
	f.t.Helper()
	log, err := f.host.Stream(f.t.Context(), subject.Stream)
	require.NoError(f.t, err)
	for _, filter := range subject.Queue() {
		i, err := log.Info(f.t.Context(), js.WithSubjectFilter(filter))
		require.NoError(f.t, err)
		for _, of := range i.State.Subjects {
			n += of
		}
	}
	return n
}

// elsewhere lists subjects at which a message has an effect.
func (f fence) elsewhere() map[string]string {
	return map[string]string{
		"another tenant's log":   subject.Run{Tenant: f.other, WorkflowID: "w", RunID: "forged"}.Frame(subject.Start),
		"a bucket of the host":   "$KV.bucket.key",
		"another reader's inbox": "_INBOX_" + f.other + ".x",
		"the queue":              "$JS.API.CONSUMER.MSG.NEXT." + subject.Stream + "." + worker,
		"another's consumer":     "$JS.API.CONSUMER.DELETE." + subject.Stream + "." + subject.Consumer(f.other, subject.DefaultConsumer),
	}
}

// request is a request that the server must reject or drop.
type request struct{ subject, body string }

func (f fence) requests() map[string]request {
	own, other := subject.Consumer(f.r.Tenant, f.r.Consumers[0]), subject.Consumer(f.other, subject.DefaultConsumer)
	api := func(call string, rest ...string) string {
		return strings.Join(append([]string{"$JS.API." + call, subject.Stream}, rest...), ".")
	}
	out := map[string]request{
		"reading from another's consumer":    {api("CONSUMER.MSG.NEXT", other), "1"},
		"reading from the host's":            {api("CONSUMER.MSG.NEXT", worker), "1"},
		"asking about another's consumer":    {api("CONSUMER.INFO", other), ""},
		"deleting its consumer":              {api("CONSUMER.DELETE", own), ""},
		"deleting another's":                 {api("CONSUMER.DELETE", other), ""},
		"pausing the host's":                 {api("CONSUMER.PAUSE", worker), `{"pause_until":"2100-01-01T00:00:00Z"}`},
		"the names of everybody's consumers": {api("CONSUMER.NAMES"), "{}"},
		"the names of everybody's runs":      {api("STREAM.INFO"), `{"subjects_filter":">"}`},
		"a message by its position":          {api("STREAM.MSG.GET"), `{"seq":1}`},
		"a message, directly":                {api("DIRECT.GET"), `{"seq":1}`},
		"a tenant's last message": {
			api("DIRECT.GET", subject.Run{Tenant: f.other, WorkflowID: "w", RunID: "r"}.Frame(subject.Start)),
			"",
		},
		"writing": {
			subject.Run{Tenant: f.r.Tenant, WorkflowID: "w", RunID: "r"}.Frame(subject.Start), "{}",
		},
		"writing into another's log": {
			subject.Run{Tenant: f.other, WorkflowID: "w", RunID: "r"}.Frame(subject.Start), "{}",
		},
		"deleting the log": {api("STREAM.DELETE"), ""},
		"emptying the log": {api("STREAM.PURGE"), ""},
		"a stream of its own over the log": {
			"$JS.API.STREAM.CREATE.MINE",
			`{"name":"MINE","subjects":["mine.>"],"sources":[{"name":"` + subject.Stream + `"}]}`,
		},
		"acknowledging for another":            {"$JS.ACK." + subject.Stream + "." + other + ".1.1.1.1.0", "+ACK"},
		"giving back what another is to read":  {"$JS.ACK." + subject.Stream + "." + worker + ".1.1.1.1.0", "+TERM"},
		"deleting a message":                   {api("STREAM.MSG.DELETE"), `{"seq":1}`},
		"making a leader of the log step down": {api("STREAM.LEADER.STEPDOWN"), ""},
	}
	// A consumer names a delivery subject in the log's account, where the server publishes without
	// a permission check. So no form of consumer creation may be permitted.
	for _, form := range []struct{ subject, name string }{
		{api("CONSUMER.CREATE", own, subject.Tenant(f.r.Tenant)), own},
		{api("CONSUMER.CREATE", own), own},
		{api("CONSUMER.CREATE"), ""},
		{api("CONSUMER.DURABLE.CREATE", own), own},
		{api("CONSUMER.CREATE", f.r.Tenant, subject.Tenant(f.r.Tenant)), f.r.Tenant},
		{api("CONSUMER.CREATE", other, subject.Tenant(f.r.Tenant)), other},
	} {
		for what, deliver := range f.elsewhere() {
			for _, action := range []string{"", "create", "update"} {
				out[fmt.Sprintf("%s (%q), pushed to %s", form.subject, action, what)] = request{
					form.subject, consumer(form.name, subject.Tenant(f.r.Tenant), action, deliver),
				}
			}
		}
		out[form.subject+", of another tenant's events"] = request{
			form.subject, consumer(form.name, subject.Tenant(f.other), "", ""),
		}
	}
	return out
}

// consumer returns a request to create a consumer, in the server's format.
func consumer(name, filter, action, deliver string) string {
	cfg := map[string]string{"ack_policy": "explicit", "filter_subject": filter}
	for key, value := range map[string]string{"name": name, "durable_name": name, "deliver_subject": deliver} {
		if value != "" {
			cfg[key] = value
		}
	}
	body, _ := json.Marshal(map[string]any{"stream_name": subject.Stream, "action": action, "config": cfg}) //nolint:errchkjson // of texts
	return string(body)
}

// asks sends all requests and checks the answers.
func (f fence) asks() {
	f.t.Helper()
	at := f.nc.NewInbox()
	answers, err := f.nc.SubscribeSync(at + ".*")
	require.NoError(f.t, err)
	var made []string
	for what, r := range f.requests() {
		require.NoError(f.t, f.nc.PublishRequest(r.subject, fmt.Sprint(at, ".", len(made)), []byte(r.body)))
		made = append(made, what)
	}
	require.NoError(f.t, f.nc.Flush())
	for {
		m, err := answers.NextMsg(quiet)
		if err != nil {
			require.ErrorIs(f.t, err, nats.ErrTimeout)
			break
		}
		i, err := strconv.Atoi(m.Subject[len(at)+1:])
		require.NoError(f.t, err)
		if m.Header.Get("Status") != "503" { // no responder
			require.Contains(f.t, string(m.Data), `"error"`, made[i])
		}
	}
	require.NoError(f.t, answers.Unsubscribe())
}

// listens subscribes to subjects that are not the reader's.
func (f fence) listens() {
	f.t.Helper()
	for _, at := range []string{
		subject.Tenant(f.other), subject.All, ">", "*.>",
		"_INBOX_" + f.other + ".>",
		"_INBOX.>", subject.Tenant(f.r.Tenant), "$KV.>", "$JS.>", "$SYS.>",
	} {
		sub, err := f.nc.SubscribeSync(at)
		require.NoError(f.t, err)
		require.NoError(f.t, f.nc.Flush())
		_, err = sub.NextMsg(quiet)
		require.ErrorIs(f.t, err, nats.ErrPermissionViolation, at)
		require.NoError(f.t, sub.Unsubscribe())
	}
}

// isAnsweredElsewhere sends the permitted requests with reply subjects that the reader may not
// publish to.
func (f fence) isAnsweredElsewhere() {
	f.t.Helper()
	for _, at := range append(f.r.Imports(), f.delivered()) {
		for _, body := range []string{"", `{"batch":3,"expires":1000000000}`, `+NXT {"batch":3}`} {
			if strings.HasSuffix(at, ">") {
				continue // acknowledgements: delivered provides one
			}
			for _, answer := range f.elsewhere() {
				require.NoError(f.t, f.nc.PublishRequest(at, answer, []byte(body)))
			}
		}
	}
	require.NoError(f.t, f.nc.Flush())
}

// isTracedElsewhere requests traces of its messages at subjects that it may not publish to (header
// Nats-Trace-Dest).
func (f fence) isTracedElsewhere() {
	f.t.Helper()
	for _, at := range f.r.Publish() {
		for _, dest := range f.elsewhere() {
			for _, only := range []string{"false", "true"} {
				require.NoError(f.t, f.nc.PublishMsg(&nats.Msg{
					Subject: strings.TrimSuffix(at, ">") + "1", Reply: f.nc.NewInbox(), Data: []byte("1"),
					Header: nats.Header{"Nats-Trace-Dest": {dest}, "Nats-Trace-Only": {only}},
				}))
			}
		}
	}
	require.NoError(f.t, f.nc.Flush())
}

// floods attempts to exceed the reader's limits.
func (f fence) floods() {
	f.t.Helper()
	at := f.nc.NewInbox()
	for i := range natsperm.MaxSubscriptions + 1 {
		_, err := f.nc.SubscribeSync(fmt.Sprint(at, ".", i))
		require.NoError(f.t, err)
	}
	require.Eventually(f.t, func() bool {
		err := f.nc.LastError()
		return err != nil && strings.Contains(err.Error(), "maximum subscriptions exceeded")
	}, 10*time.Second, time.Millisecond)
	require.EqualValues(f.t, natsperm.MaxPayload, f.nc.MaxPayload(), "the limit that the server announces")
}

// delivered returns the reply subject of a delivered message, for its acknowledgement.
func (f fence) delivered() string {
	f.t.Helper()
	m, err := f.nc.Request("$JS.API.CONSUMER.MSG.NEXT."+subject.Stream+"."+subject.Consumer(f.r.Tenant, f.r.Consumers[0]), []byte("1"), 10*time.Second)
	require.NoError(f.t, err)
	require.Equal(f.t, "$JS.ACK", strings.Join(strings.Split(m.Reply, ".")[:2], "."), "%v %s", m.Header, m.Data)
	return m.Reply
}
