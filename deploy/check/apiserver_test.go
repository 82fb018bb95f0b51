package check

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/freeport"
)

// cluster is a real API server over a real etcd, without controllers: it validates and stores
// objects without effects.
type cluster struct {
	t          *testing.T
	kubeconfig string
}

const adminToken = "apiserver-token-of-a-test"

// newCluster starts a cluster that stops with the test.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	for _, tool := range []string{"ETCD", "KUBE_APISERVER", "KUBECTL", "CRDS"} {
		if os.Getenv(tool) == "" {
			t.Skipf("SKIPPED, %s is not set: run `make deploy-check ONLY=apiserver`", tool)
		}
	}
	dir := t.TempDir()
	etcd, peer, api := freeport.Take(t), freeport.Take(t), freeport.Take(t)
	etcdURL := "http://127.0.0.1:" + etcd
	process(t, dir, os.Getenv("ETCD"), "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level", "error",
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL, "--listen-peer-urls", "http://127.0.0.1:"+peer)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	accounts := filepath.Join(dir, "accounts.key")
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
	require.NoError(t, os.WriteFile(accounts, key, 0o600))
	tokens := filepath.Join(dir, "tokens.csv")
	require.NoError(t, os.WriteFile(tokens, []byte(adminToken+",admin,1,system:masters\n"), 0o600))
	process(t, dir, os.Getenv("KUBE_APISERVER"), "--etcd-servers", etcdURL, "--bind-address", "127.0.0.1", "--secure-port", api,
		"--cert-dir", dir, "--token-auth-file", tokens, "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
		"--service-account-key-file", accounts, "--service-account-signing-key-file", accounts,
		"--service-account-issuer", "https://kubernetes.default.svc", "--endpoint-reconciler-type", "none", "--v", "0")
	c := &cluster{t: t, kubeconfig: filepath.Join(dir, "kubeconfig")}
	require.NoError(t, os.WriteFile(c.kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:%s", certificate-authority: %s}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, api, filepath.Join(dir, "apiserver.crt"), adminToken), 0o600))
	require.Eventually(t, func() bool { _, ok := c.kubectl("", "get", "--raw", "/readyz"); return ok }, 2*time.Minute, 200*time.Millisecond)
	return c
}

// process runs until the test ends; its output is shown if the test failed.
func process(t *testing.T, dir, bin string, args ...string) {
	t.Helper()
	file := filepath.Join(dir, filepath.Base(bin)+".log")
	log, err := os.Create(file) //nolint:gosec // G304: below the test's directory
	require.NoError(t, err)
	cmd := exec.Command(bin, args...) //nolint:gosec,noctx // G204: the tool that the Makefile names; ended below
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // killed
		_ = log.Close()
		if said, err := os.ReadFile(file); err == nil && t.Failed() { //nolint:gosec // G304: as above
			t.Logf("%s:\n%s", bin, said[max(0, len(said)-4000):])
		}
	})
}

func (c *cluster) run(bin, stdin string, args ...string) (output string, ok bool) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), bin, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	// The tools must not read or write the user's own configuration.
	cmd.Env = []string{"HOME=" + filepath.Dir(c.kubeconfig), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func (c *cluster) kubectl(stdin string, args ...string) (output string, ok bool) {
	return c.run(os.Getenv("KUBECTL"), stdin, args...)
}

// must runs kubectl and fails the test on an error.
func (c *cluster) must(stdin string, args ...string) string {
	c.t.Helper()
	out, ok := c.kubectl(stdin, args...)
	require.True(c.t, ok, "kubectl %v: %s", args, out)
	return out
}

// apply applies objects and treats warnings as errors: the namespace warns of pods that
// "restricted" would reject.
var apply = []string{"apply", "--server-side", "--validate=strict", "--warnings-as-errors", "-f", "-"}

// podsOf returns the pods that controllers would create for Deployments.
func podsOf(t *testing.T, doc string) string {
	t.Helper()
	var out strings.Builder
	for _, o := range parse(t, []byte(doc)).of("Deployment") {
		var d struct {
			Template struct {
				Metadata map[string]any `yaml:"metadata"`
				Spec     map[string]any `yaml:"spec"`
			} `yaml:"template"`
		}
		require.NoError(t, o.Spec.Decode(&d))
		d.Template.Metadata["name"], d.Template.Metadata["namespace"] = o.Metadata.Name, namespace
		pod, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": d.Template.Metadata, "spec": d.Template.Spec})
		require.NoError(t, err)
		out.WriteString("---\n" + string(pod))
	}
	return out.String()
}

// A real API server accepts everything that the chart renders, in a namespace with the strictest
// standard, and again as an upgrade and as a Helm release.
func TestAPIServer_TakesWhatTheChartRenders(t *testing.T) {
	c := newCluster(t)
	c.must("", "apply", "--server-side", "-f", os.Getenv("CRDS"))
	c.must(source(t, manifests+"/namespace.yaml"), apply...)
	c.must("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: production}\nvalue: 1000\n", apply...)
	c.must("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")

	files := valueSets(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			doc, messages, ok := template(t, "-f", file)
			require.True(t, ok, messages)
			c.must(doc, append(apply, "--force-conflicts")...)
			pods := podsOf(t, doc)
			require.Contains(t, pods, "kind: Pod")
			c.must(pods, append(apply, "--dry-run=server")...)
			_, ok = c.kubectl(strings.Replace(pods, "runAsNonRoot: true", "runAsNonRoot: false", 2), append(apply, "--dry-run=server")...)
			require.False(t, ok, "the namespace enforces nothing")
			c.must(doc, "delete", "--wait=false", "-f", "-")
		})
	}
	t.Run("kustomization", func(t *testing.T) {
		c.must("", append(apply[:len(apply)-2:len(apply)-2], "-k", manifests)...)
		c.must("", "delete", "--wait=false", "deployments,services,configmaps,serviceaccounts,networkpolicies,poddisruptionbudgets", "--all", "-n", namespace)
	})
	t.Run("release", func(t *testing.T) {
		for _, step := range []string{"manifests", "ha", "hpa", "manifests"} {
			// Without --reset-values, helm upgrade reuses the previous values.
			out, ok := c.run(os.Getenv("HELM"), "", "upgrade", "--install", "--reset-values", "waybill", chart, "--namespace", namespace,
				"-f", filepath.Join(chart, "ci", step+"-values.yaml"))
			require.True(t, ok, out)
			for _, secret := range []string{"waybill-api-keys", "waybill-audit-key", "waybill-nats", "waybill-acceptor-tls", "waybill-service-token", "waybill-host-key"} {
				require.Contains(t, out, "\n  "+secret+"\n", "the notes name what has to be there")
			}
			require.Contains(t, out, "rollout status deployment -l app.kubernetes.io/instance=waybill")
		}
		require.Empty(t, c.must("", "get", "hpa,scaledobject", "-n", namespace, "-o", "name"), "what scaled before is gone with its mode")
	})
}
