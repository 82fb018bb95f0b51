package check

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/test/harness"
)

const apiKey = "the-key-that-acme-calls-with"

// addresses of other services, and the listen addresses of a pod.
var (
	calls   = regexp.MustCompile(`"[a-z]+-([a-z]+)\.` + namespace + `\.svc:[0-9]+"`)
	listens = regexp.MustCompile(`(?m)^([a-z]+)-addr: ":[0-9]+"$`)
)

// node runs the pods of the test on one machine: one process each, with the settings, variables and
// files that the chart gives the pod.
type node struct {
	t       *testing.T
	set     set
	secrets map[string]string // by name and key
	ca      *authority
	nats    string
	// postgres is the URL of a server; empty if the set needs none.
	postgres string
	// grpc are the addresses of each service's pods.
	grpc map[string][]string
}

type runningPod struct {
	*harness.Host
	service string
	probes  container
	http    string // the gateway's address
	metrics string
}

// replicas is the number of pods of a Deployment, or 1 if it is autoscaled.
func replicas(t *testing.T, o *object) int {
	t.Helper()
	if n := spec[deployment](t, o).Replicas; n != nil {
		return *n
	}
	return 1
}

// start runs all pods of a set, and waits until each is ready.
func (n *node) start() []*runningPod {
	n.t.Helper()
	for _, o := range n.set.of("Deployment") {
		for range replicas(n.t, o) {
			n.grpc[o.service()] = append(n.grpc[o.service()], freeport.Addr(n.t))
		}
	}
	var all []*runningPod
	for _, o := range n.set.of("Deployment") {
		for _, addr := range n.grpc[o.service()] {
			all = append(all, n.pod(o, addr))
		}
	}
	for _, p := range all {
		p.Await()
	}
	return all
}

// pod starts one process. Cluster-specific values are replaced: addresses and file paths. All other
// settings stay.
func (n *node) pod(o *object, addr string) *runningPod {
	n.t.Helper()
	files := n.t.TempDir()
	d := spec[deployment](n.t, o).Template.Spec
	c := d.Containers[0]
	p := &runningPod{service: o.service(), probes: c}
	here := []string{"/etc/waybill/", files + "/"}
	for _, v := range d.Volumes {
		if v.Secret != nil {
			n.mount(filepath.Join(files, v.Name), o.service(), v.Name)
		}
		for _, m := range c.Mounts {
			if m.Name == v.Name && v.Secret != nil && !strings.HasPrefix(m.Path, "/etc/waybill/") {
				here = append([]string{m.Path, filepath.Join(files, v.Name)}, here...)
			}
		}
	}
	at := strings.NewReplacer(here...)
	var doc string
	for _, m := range n.set.of("ConfigMap") {
		if m.service() == o.service() {
			doc = m.Data["config.yaml"]
		}
	}
	_, grpc, err := net.SplitHostPort(addr)
	require.NoError(n.t, err)
	doc = listens.ReplaceAllStringFunc(doc, func(line string) string {
		name, port := listens.FindStringSubmatch(line)[1], grpc
		if name != "grpc" {
			port = freeport.Take(n.t)
		}
		switch name {
		case "http":
			p.http = "http://127.0.0.1:" + port
			if strings.Contains(doc, "tls-cert:") {
				p.http = "https://127.0.0.1:" + port
			}
		case "metrics":
			p.metrics = "http://127.0.0.1:" + port
		}
		return fmt.Sprintf("%s-addr: %q", name, ":"+port)
	})
	doc = calls.ReplaceAllStringFunc(doc, func(name string) string {
		return fmt.Sprintf("%q", strings.Join(n.grpc[calls.FindStringSubmatch(name)[1]], ","))
	})
	doc = regexp.MustCompile(`(?m)^nats: .*$`).ReplaceAllString(doc, fmt.Sprintf("nats: %q", n.nats))
	doc = strings.ReplaceAll(doc, `"`+dataDir+`"`, fmt.Sprintf("%q", filepath.Join(files, "data")))
	doc = at.Replace(doc)
	file := filepath.Join(files, "config.yaml")
	require.NoError(n.t, os.WriteFile(file, []byte(doc), 0o600))
	p.Host = harness.BeginWith(n.t, o.service(), harness.Options{Args: []string{"--config", file, "--grpc-addr", ":" + grpc}, Env: n.env(c, at)})
	return p
}

// env are the variables of a container.
func (n *node) env(c container, at *strings.Replacer) []string {
	n.t.Helper()
	var out []string
	for _, e := range c.Env {
		value := strings.ReplaceAll(e.Value, "$(MEMORY_LIMIT_MIB)", "256")
		switch {
		case e.From.Resource != nil:
			value = map[string]string{"limits.memory": "256", "limits.cpu": "2"}[e.From.Resource.Resource]
		case e.From.Secret != nil:
			value = n.secrets[e.From.Secret.Name+"/"+e.From.Secret.Key]
		}
		require.NotEmpty(n.t, value, e.Name)
		out = append(out, e.Name+"="+at.Replace(value))
	}
	return out
}

// mount writes the files of a Secret as its volume has them: not world-readable.
func (n *node) mount(dir, service, volume string) {
	n.t.Helper()
	require.NoError(n.t, os.MkdirAll(dir, 0o700))
	put := func(name, content string) {
		require.NoError(n.t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o440)) //nolint:gosec // G306: what the chart sets
	}
	switch volume {
	case "tls":
		cert, key := n.ca.issue(n.t, service)
		put("tls.crt", cert)
		put("tls.key", key)
		put("ca.crt", n.ca.pem)
	case "token":
		put("token", strings.Repeat("t", 32))
	case "host":
		put("host.key", strings.Repeat("h", 32))
	case "audit":
		put("audit.pem", auditKey(n.t))
	case "secrets":
		put("secrets.yaml", "crm: what-nobody-may-read\n")
	case "postgres":
		put("url", n.postgres)
		put("ca.crt", n.ca.pem)
	case "models":
		put("anthropic", "a-key-in-a-file-of-a-secret")
	case "tenant-keys":
		require.NoError(n.t, os.MkdirAll(filepath.Join(dir, "acme", "openai"), 0o700))
		put("acme/openai/main", "a-key-that-a-tenant-brings")
	default:
		n.t.Fatalf("a Secret that the test does not have: %s", volume)
	}
}

// read sends a request to a pod.
func (n *node) read(url string) string {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(n.t, err)
	res, err := n.client().Do(req)
	require.NoError(n.t, err, url)
	defer res.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(res.Body)
	require.NoError(n.t, err, url)
	require.Equal(n.t, http.StatusOK, res.StatusCode, "%s: %s", url, body)
	return string(body)
}

func (n *node) client() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(n.ca.pem))
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true,
	}}
}

// carryOut runs the order example through a gateway, with an API key in its inputs.
func (n *node) carryOut(gateway *runningPod) {
	n.t.Helper()
	c := &harness.Client{Base: gateway.http, Key: apiKey, HTTP: n.client()}
	a, err := c.Do(n.t.Context(), http.MethodPost, "/v1/workflows", source(n.t, "../../examples/order/workflow.json"))
	require.NoError(n.t, err)
	require.Less(n.t, a.Status, 300, "%s", a.Body)
	a, err = c.Do(n.t.Context(), http.MethodPost, "/v1/runs",
		`{"workflowId": "order", "inputs": {"lines": [{"sku": "`+apiKey+`", "cents": 250, "quantity": 2}]}}`)
	require.NoError(n.t, err)
	require.Equal(n.t, http.StatusCreated, a.Status, "%s", a.Body)
	var run struct {
		RunID string `json:"runId"`
	}
	require.NoError(n.t, a.JSON(&run))
	events, err := c.Finish(n.t.Context(), run.RunID)
	require.NoError(n.t, err)
	require.Equal(n.t, "run.completed", events[len(events)-1].Type)
	var all strings.Builder
	for _, e := range events {
		all.Write(e.Raw)
	}
	require.NotContains(n.t, all.String(), apiKey, "the redactor has no API keys")
	require.Contains(n.t, all.String(), "[REDACTED:api-key-1]")
}

// lease is the duration of the dispatcher's lease, as other dispatchers see it.
func (n *node) lease() time.Duration {
	n.t.Helper()
	nc, err := nats.Connect(n.nats)
	require.NoError(n.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(n.t, err)
	bucket, err := js.KeyValue(n.t.Context(), "waybill_leases")
	require.NoError(n.t, err)
	keys, err := bucket.Keys(n.t.Context())
	require.NoError(n.t, err)
	require.NotEmpty(n.t, keys) // one for each replica
	e, err := bucket.Get(n.t.Context(), keys[0])
	require.NoError(n.t, err)
	var r lease.Record
	require.NoError(n.t, json.Unmarshal(e.Value(), &r))
	return r.Duration()
}

// The rendered chart starts the services, each probe answers, a run completes through the gateway,
// and each process stops in time.
func TestServices_StartWithTheSettingsOfTheChart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	for _, values := range []string{"manifests", "ha", "mesh", "envelopes", "postgresql"} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			out, messages, ok := template(t, "-f", filepath.Join(chart, "ci", values+"-values.yaml"), "--set", "nats.logReplicas=1,nats.credsKey=,nats.nkeyKey=,nats.caKey=,nats.certKey=,nats.certKeyKey=,nats.monitor=null")
			require.True(t, ok, messages)
			n := &node{t: t, set: parse(t, []byte(out)), ca: newAuthority(t), nats: startNATS(t), grpc: map[string][]string{}}
			n.secrets = map[string]string{
				"waybill-nats/url": n.nats, "waybill-api-keys/api-keys": apiKey + "=acme:*",
				"waybill-models/openai": "a-key-of-a-vendor", "waybill-tools/crm": "a-token-of-a-tool",
				"waybill-interrupts/keys": "1=" + strings.Repeat("A", 43) + "=",
			}
			if values == "postgresql" {
				n.postgres = postgrestest.Start(t).URL()
			}
			pods := n.start()
			for _, p := range pods {
				base := p.metrics
				if p.probes.Readiness.HTTP.Port == "http" {
					base = p.http
				}
				for _, ask := range []*probe{p.probes.Startup, p.probes.Readiness, p.probes.Liveness} {
					require.JSONEq(t, `{"status": "ok"}`, n.read(base+ask.HTTP.Path), "%s %s", p.service, ask.HTTP.Path)
				}
				require.Contains(t, n.read(p.metrics+"/metrics"), "\nwaybill_serving 1\n", "%s: exports no waybill_serving metric", p.service)
			}
			for _, p := range pods {
				switch p.service {
				case "gateway":
					n.carryOut(p)
				case "dispatcher":
					require.Equal(t, settings(t, n.set, p.service)["lease"], n.lease().String())
				}
			}
			for _, p := range pods {
				began := time.Now()
				require.Zero(t, p.Stop().ExitCode(), p.service)
				require.Less(t, time.Since(began), drain, p.service)
			}
		})
	}
}
