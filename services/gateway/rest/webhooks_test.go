package rest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	logmemory "waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/webhook"
)

// places resolves the names of the tests.
type places map[string]string

func (p places) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a, ok := p[host]
	if !ok {
		return nil, fmt.Errorf("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(a)}, nil
}

// hooked is a host with webhooks, and its records.
func hooked(t *testing.T) (*host, *memory.Store) {
	t.Helper()
	records := memory.New()
	h := newHostWith(t, func(d *gateway.Deps) {
		var err error
		d.Records = records
		d.Webhooks, err = webhook.New(webhook.Config{
			HostKey:  []byte(strings.Repeat("k", 32)),
			Delivery: webhook.DefaultPolicy(),
		}, webhook.Deps{
			Log: logmemory.New(), Subscriptions: memory.New(), Lanes: memory.New(), Dead: memory.New(), Clock: time.Now,
			Logger:   slog.New(slog.DiscardHandler),
			Resolver: places{"hooks.example": "8.8.8.8", "inside.example": "10.0.0.1", "six.example": "2002:a00:1::"},
		})
		require.NoError(t, err)
	})
	return h, records
}

const hooksPath = "/v1/webhooks"

type made struct{ WebhookID, Secret, SecretFingerprint string }

func register(t *testing.T, h *host, credential, body string, headers ...string) made {
	t.Helper()
	w := h.as(t, credential, http.MethodPost, hooksPath, body, headers...)
	require.Equal(t, http.StatusCreated, w.Code, "%s", w.Body)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var m made
	d := json.NewDecoder(strings.NewReader(w.Body.String()))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&m))
	return m
}

const someHook = `{"url":"https://hooks.example/in","events":["run.completed"]}`

// OpenWOP host contract §10.5: the row of 201.
func TestWebhooks_RegistrationReturnsTheSecretOnce(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	m := register(t, h, full, `{"url":"https://hooks.example/in","events":["run.completed","acme.own","run.completed"],"tags":["a"],"tenantId":"acme"}`)
	require.Regexp(t, `^[0-9a-f]{64}$`, m.Secret)
	sum := sha256.Sum256([]byte(m.Secret))
	require.Equal(t, hex.EncodeToString(sum[:])[:8], m.SecretFingerprint)

	w := h.as(t, full, http.MethodGet, hooksPath, "")
	require.Equal(t, http.StatusOK, w.Code)
	require.NotContains(t, w.Body.String(), m.Secret)
	var list struct{ Webhooks []map[string]any }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list))
	require.Len(t, list.Webhooks, 1)
	created := list.Webhooks[0]["createdAt"]
	require.NotEmpty(t, created)
	require.Equal(t, map[string]any{
		"webhookId":           m.WebhookID,
		"url":                 "https://hooks.example/in",
		"events":              []any{"run.completed", "acme.own"},
		"tags":                []any{"a"},
		"createdAt":           created,
		"status":              "active",
		"consecutiveFailures": 0.0,
		"recentFailures":      0.0,
		"droppedEvents":       0.0,
		"secretFingerprint":   m.SecretFingerprint,
	}, list.Webhooks[0])
}

// OpenWOP host contract §10.5, registration: each row that refuses.
func TestWebhooks_RejectInvalidRegistrations(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	for name, tc := range map[string]struct {
		body string
		want fault.Code
		says string
	}{
		"no url":    {`{"events":["run.completed"]}`, fault.ValidationError, "/url: required"},
		"empty url": {`{"url":"","events":["run.completed"]}`, fault.ValidationError, "/url: required"},
		"no URL at all": {
			`{"url":"nonsense","events":["run.completed"]}`, fault.ValidationError,
			"/url: want an absolute URL",
		},
		"url of another type": {`{"url":1,"events":["run.completed"]}`, fault.ValidationError, "/url"},
		"no events":           {`{"url":"https://hooks.example/"}`, fault.ValidationError, "/events: required"},
		"empty events":        {`{"url":"https://hooks.example/","events":[]}`, fault.ValidationError, "/events: required"},
		"events no list": {
			`{"url":"https://hooks.example/","events":"run.completed"}`, fault.ValidationError, "/events",
		},
		"unknown event": {
			`{"url":"https://hooks.example/","events":["run.completed","run.finished"]}`,
			fault.ValidationError, "/events/1",
		},
		"wildcard": {`{"url":"https://hooks.example/","events":["*"]}`, fault.ValidationError, "/events/0"},
		"caller's secret": {
			`{"url":"https://hooks.example/","events":["run.completed"],"secret":"mine"}`,
			fault.ValidationError, "/secret",
		},
		"unknown member": {
			`{"url":"https://hooks.example/","events":["run.completed"],"x":1}`, fault.ValidationError, "/x",
		},
		"empty tag": {
			`{"url":"https://hooks.example/","events":["run.completed"],"tags":[""]}`, fault.ValidationError,
			"/tags/0",
		},
		"malformed comes first": {`{"url":"https://127.0.0.1/"}`, fault.ValidationError, "/events"},
		"not https": {
			`{"url":"http://hooks.example/","events":["run.completed"]}`, fault.WebhookURLRejected,
			"want the scheme https",
		},
		"loopback": {
			`{"url":"https://127.0.0.1/","events":["run.completed"]}`, fault.WebhookURLRejected,
			"not public",
		},
		"link-local": {
			`{"url":"https://169.254.169.254/","events":["run.completed"]}`, fault.WebhookURLRejected,
			"not public",
		},
		"private": {
			`{"url":"https://192.168.0.1/","events":["run.completed"]}`, fault.WebhookURLRejected,
			"not public",
		},
		"mapped": {
			`{"url":"https://[::ffff:10.0.0.1]/","events":["run.completed"]}`, fault.WebhookURLRejected,
			"not public",
		},
		"localhost": {
			`{"url":"https://localhost/","events":["run.completed"]}`, fault.WebhookURLRejected,
			"not public",
		},
		"resolves inside": {
			`{"url":"https://inside.example/","events":["run.completed"]}`, fault.WebhookURLRejected,
			"not public",
		},
		"resolves to 6to4": {
			`{"url":"https://six.example./","events":["run.completed"]}`, fault.WebhookURLRejected,
			"not public",
		},
		"userinfo": {
			`{"url":"https://u:p4ssw0rd@hooks.example/","events":["run.completed"]}`,
			fault.WebhookURLRejected, "user or password",
		},
		"another tenant": {
			`{"url":"https://hooks.example/","events":["run.completed"],"tenantId":"beta"}`, fault.Forbidden,
			"/tenantId",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := refused(t, h.as(t, full, http.MethodPost, hooksPath, tc.body), tc.want)
			require.Contains(t, e.Message, tc.says)
			require.NotContains(t, e.Message, "p4ssw0rd")
		})
	}
}

// A name without an address is checked when it is called.
func TestWebhooks_AcceptANameThatDoesNotResolve(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	register(t, h, full, `{"url":"https://later.example/","events":["run.completed"]}`)
}

func TestWebhooks_NeedTheirScope(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	for _, c := range []struct{ method, path, body string }{
		{http.MethodPost, hooksPath, someHook},
		{http.MethodGet, hooksPath, ""},
		{http.MethodDelete, hooksPath + "/wh_1", ""},
		{http.MethodPost, hooksPath + "/wh_1:rotate", ""},
		{http.MethodGet, hooksPath + "/wh_1/deliveries", ""},
	} {
		e := refused(t, h.as(t, reader, c.method, c.path, c.body), fault.Forbidden)
		require.Equal(t, "webhooks:manage", e.Details["scopeRequired"])
		refused(t, h.do(t, c.method, c.path, c.body, "Content-Type", "application/json"), fault.Unauthenticated)
	}
}

// OpenWOP host contract §10.5: DELETE, and 404 for what is unknown or another's.
func TestWebhooks_BelongToTheirTenant(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	m := register(t, h, full, someHook)
	path := hooksPath + "/" + m.WebhookID
	for _, c := range []struct{ method, path string }{
		{http.MethodDelete, path},
		{http.MethodPost, path + ":rotate"},
		{http.MethodGet, path + "/deliveries"},
		{http.MethodGet, path + "/deliveries?status=pending"},
	} {
		refused(t, h.as(t, beta, c.method, c.path, ""), fault.SubscriptionNotFound)
		refused(t, h.as(t, full, c.method, strings.Replace(c.path, m.WebhookID, "wh_other", 1), ""), fault.SubscriptionNotFound)
	}
	w := h.as(t, beta, http.MethodGet, hooksPath, "")
	require.JSONEq(t, `{"webhooks":[]}`, w.Body.String())
	refused(t, h.as(t, full, http.MethodDelete, path+"?tenantId=beta", ""), fault.SubscriptionNotFound)

	w = h.as(t, full, http.MethodDelete, path+"?tenantId=acme", "")
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Empty(t, w.Body.String())
	require.Empty(t, w.Header().Get("Content-Type"))
	refused(t, h.as(t, full, http.MethodDelete, path, ""), fault.SubscriptionNotFound)
}

func TestWebhooks_RotateTheSecret(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	m := register(t, h, full, someHook)
	rotate := hooksPath + "/" + m.WebhookID + ":rotate"
	w := h.as(t, full, http.MethodPost, rotate, `{"overlapSeconds":3600}`)
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	var r struct {
		made
		Generation                int
		PreviousSecretFingerprint string
		PreviousValidUntil        time.Time
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &r))
	require.Equal(t, 2, r.Generation)
	require.NotEqual(t, m.Secret, r.Secret)
	require.Equal(t, m.SecretFingerprint, r.PreviousSecretFingerprint)
	require.WithinDuration(t, time.Now().Add(time.Hour), r.PreviousValidUntil, time.Minute)
	w = h.as(t, full, http.MethodPost, rotate, `{"overlapSeconds":0}`)
	require.NotContains(t, w.Body.String(), "previous")
	for _, bad := range []string{
		`{"overlapSeconds":-1}`, `{"overlapSeconds":604801}`, `{"overlapSeconds":"1"}`, `{"secret":"x"}`,
	} {
		refused(t, h.as(t, full, http.MethodPost, rotate, bad), fault.ValidationError)
	}
	w = h.as(t, full, http.MethodPost, rotate, "")
	require.Equal(t, http.StatusOK, w.Code, "the body may be left out")
}

// OpenWOP host contract §2.1: a repeated request gets the first answer, and its record has no secret.
func TestWebhooks_AnswerARepeatedRequestAlike(t *testing.T) {
	t.Parallel()
	h, records := hooked(t)
	m := register(t, h, full, someHook, "Idempotency-Key", "k1")
	again := h.as(t, full, http.MethodPost, hooksPath, someHook, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusCreated, again.Code)
	require.Equal(t, "true", header(again, replayHeader))
	var n made
	require.NoError(t, json.Unmarshal(again.Body.Bytes(), &n))
	require.Equal(t, m, n)

	rotate := hooksPath + "/" + m.WebhookID + ":rotate"
	first := h.as(t, full, http.MethodPost, rotate, "{}", "Idempotency-Key", "k2")
	second := h.as(t, full, http.MethodPost, rotate, "{}", "Idempotency-Key", "k2")
	require.Equal(t, first.Body.String(), second.Body.String())
	require.NoError(t, json.Unmarshal(first.Body.Bytes(), &n))
	require.NotEqual(t, m.Secret, n.Secret)

	for range 2 {
		w := h.as(t, full, http.MethodDelete, hooksPath+"/"+m.WebhookID, "", "Idempotency-Key", "k3")
		require.Equal(t, http.StatusNoContent, w.Code, "%s", w.Body)
		require.Empty(t, w.Body.String())
	}
	stored := dump(t, records)
	require.Contains(t, stored, m.WebhookID)
	require.NotContains(t, stored, m.Secret)
	require.NotContains(t, stored, n.Secret)
}

// dump returns the answers in a store.
func dump(t *testing.T, s kv.Store) string {
	t.Helper()
	found, err := kv.List(t.Context(), s, "")
	require.NoError(t, err)
	var b strings.Builder
	for _, e := range found {
		var record struct{ Response []byte }
		require.NoError(t, json.Unmarshal(e.Value, &record))
		b.Write(e.Value)
		b.Write(record.Response)
	}
	return b.String()
}

func TestWebhooks_AreListedInPages(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	want := map[string]bool{}
	for range 5 {
		want[register(t, h, full, someHook).WebhookID] = true
	}
	got, cursor := map[string]bool{}, ""
	for range 3 {
		var page struct {
			Webhooks   []made
			NextCursor string
		}
		w := h.as(t, full, http.MethodGet, hooksPath+"?limit=2&cursor="+cursor, "")
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page), "%s", w.Body)
		for _, m := range page.Webhooks {
			got[m.WebhookID] = true
		}
		cursor = page.NextCursor
	}
	require.Equal(t, want, got)
	require.Empty(t, cursor)
	refused(t, h.as(t, full, http.MethodGet, hooksPath+"?limit=201", ""), fault.ValidationError)
	refused(t, h.as(t, full, http.MethodGet, hooksPath+"?cursor=%25", ""), fault.ValidationError)
	for id := range want {
		refused(t, h.as(t, full, http.MethodGet, hooksPath+"/"+id+"/deliveries?status=lost", ""), fault.ValidationError)
		w := h.as(t, full, http.MethodGet, hooksPath+"/"+id+"/deliveries", "")
		require.JSONEq(t, `{"deliveries":[]}`, w.Body.String())
	}
}

func TestWebhooks_AreLimited(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	for range webhook.DefaultPolicy().PerTenant {
		register(t, h, full, someHook)
	}
	refused(t, h.as(t, full, http.MethodPost, hooksPath, someHook), fault.Conflict)
	register(t, h, beta, someHook)
}

// OpenWOP host contract §1.4: advertised if supported.
func TestWebhooks_AreAdvertisedIfSupported(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	var d map[string]any
	require.NoError(t, json.Unmarshal(h.do(t, http.MethodGet, "/.well-known/openwop", "").Body.Bytes(), &d))
	require.Equal(t, map[string]any{"supported": true, "signatureAlgorithms": []any{"v1"}, "durable": true}, d["webhooks"])
	d = nil
	require.NoError(t, json.Unmarshal(newHost(t).do(t, http.MethodGet, "/.well-known/openwop", "").Body.Bytes(), &d))
	require.NotContains(t, d, "webhooks")
}
