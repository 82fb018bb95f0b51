package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func source(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file) //nolint:gosec // G304: a file of ours
	require.NoError(t, err)
	return string(b)
}

// configMapVolume is a volume of the dispatcher in --set syntax.
func configMapVolume(name, at string) string {
	return fmt.Sprintf("dispatcher.configMapVolumes[0].name=%s,dispatcher.configMapVolumes[0].configMap=c,dispatcher.configMapVolumes[0].mountPath=%s", name, at)
}

func secretVolume(service, name, at string) string {
	return fmt.Sprintf("%[1]s.secretVolumes[0].name=%[2]s,%[1]s.secretVolumes[0].secret=a,%[1]s.secretVolumes[0].mountPath=%[3]s", service, name, at)
}

func secretEnv(service, name string) string {
	return fmt.Sprintf("%[1]s.secretEnv[0].name=%[2]s,%[1]s.secretEnv[0].secretName=a,%[1]s.secretEnv[0].secretKey=k", service, name)
}

// Invalid values are rejected before the installation, with the name of the value and a fix.
func TestValues_ThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, want string }{
		{"tsl.enabled=true", "additional properties 'tsl' not allowed"},
		{"gateway.replica=3", "at '/gateway': additional properties 'replica' not allowed"},
		{"gateway.replicas=many", "at '/gateway/replicas': got string, want integer"},
		{"common.replicas=0", "at '/common/replicas': minimum: got 0, want 1"},
		{"nats.logReplicas=2", "at '/nats/logReplicas': value must be one of 1, 3, 5"},
		{"dispatcher.autoscaling.mode=both", "at '/dispatcher/autoscaling/mode': value must be one of 'none', 'hpa', 'keda'"},
		{"dispatcher.lease=3", "at '/dispatcher/lease': got number, want string"},
		{"nats.existingSecret=", "at '/nats/existingSecret'"},
		{"publicUrl=waybill.example", "at '/publicUrl'"},
		{"dispatcher.autoscaling.mode=keda", "dispatcher.keda.natsMonitoringEndpoint: must be set for mode keda"},
		{"gateway.autoscaling.mode=keda", "gateway.autoscaling.mode: keda scales the dispatcher only"},
		{"gateway.autoscaling.mode=hpa,gateway.autoscaling.minReplicas=20", "gateway.autoscaling: minReplicas 20 is more than maxReplicas 10"},
		{"gateway.autoscaling.mode=hpa,gateway.autoscaling.minReplicas=0", "at '/gateway/autoscaling/minReplicas': minimum: got 0, want 1"},
		{"dispatcher.autoscaling.mode=keda,dispatcher.autoscaling.minReplicas=0", "at '/dispatcher/autoscaling/minReplicas': minimum: got 0, want 1"},
		{"dispatcher.keda.cooldownPeriod=300", "at '/dispatcher/keda': additional properties 'cooldownPeriod' not allowed"},
		{"common.autoscaling.behavior.scaleDown.stabilizationWindowSeconds=18000", "maximum: got 18,000, want 3,600"},
		{"common.autoscaling.mode=hpa", "redactor.autoscaling.mode: must be none"},
		{"common.preStopSeconds=20", "gateway.terminationGracePeriodSeconds: must be at least 50"},
		{"common.resources.limits.memory=null", "gateway.resources.limits.memory: must be set"},
		{"image.tag=latest", "image.tag: latest is another image tomorrow"},
		{"nats.url=nats://user:pass@nats:4222", "nats.url: holds a user or password"},
		{"nats.credsKey=a,nats.nkeyKey=b", "nats.credsKey, nats.nkeyKey: both identify the client"},
		{"nats.certKey=tls.crt", "nats.certKey, nats.certKeyKey: belong together"},
		{"nats.logReplicas=1,nats.logInSync=2", "nats.logInSync: 2 is more than logReplicas 1"},
		{"nats.monitor[0]=http://user:pass@nats:8222", "nats.monitor[0]: must not contain a user or password"},
		{"gateway.secretVolumes[0].name=token,gateway.secretVolumes[0].secret=a,gateway.secretVolumes[0].mountPath=/a", "gateway.secretVolumes: token is the name of a volume of the chart's own"},
		{"gateway.secretVolumes[0].name=x,gateway.secretVolumes[0].secret=a,gateway.secretVolumes[0].mountPath=/a,dispatcher.secretVolumes[0].name=x," +
			"dispatcher.secretVolumes[0].secret=b,dispatcher.secretVolumes[0].mountPath=/a", "dispatcher.secretVolumes: x is another one elsewhere"},
		{"dispatcher.config.nats-nkey=/seed", "dispatcher.config.nats-nkey: is set by the chart itself"},
		{"redactor.enabled=false", "redactor.enabled: acceptor calls it"},
		{"gateway.config.api-key=k", "gateway.config.api-key: is secret, and a ConfigMap is not; put it into the Secret of gateway.apiKeys"},
		{"gateway.config.interrupt-keys=k", "gateway.config.interrupt-keys: is secret, and a ConfigMap is not; give WAYBILL_INTERRUPT_KEYS by gateway.secretEnv"},
		{"metrics.port=8080", "gateway.ports.http, metrics.port: 8080 cannot be the port of both"},
		{"gateway.ports.http=9100", "gateway.ports.http, metrics.port: 9100 cannot be the port of both"},
		{"gateway.ports.http=9090", "gateway.ports.http, gateway.ports.grpc: 9090 cannot be the port of both"},
		{"publicUrl=https://a,acceptor.assets.serve=true,acceptor.assets.port=9091", "acceptor.ports.grpc, acceptor.assets.port: 9091 cannot be the port of both"},
		{configMapVolume("tls", "/a"), "dispatcher.configMapVolumes: tls is the name of a volume of the chart's own"},
		{configMapVolume("config", "/a"), "dispatcher.configMapVolumes: config is the name of a volume of the chart's own"},
		{configMapVolume("x", "/etc/waybill/token/"), "dispatcher.configMapVolumes: x is mounted at /etc/waybill/token, where token is"},
		{secretVolume("dispatcher", "x", "/a") + "," + configMapVolume("y", "/a/"), "dispatcher.configMapVolumes: y is mounted at /a, where x is"},
		{secretVolume("dispatcher", "x", "/a") + "," + configMapVolume("x", "/b"), "dispatcher.configMapVolumes: x is the name of another volume of its pods"},
		{secretVolume("dispatcher", "x", "/a") + "," + secretVolume("gateway", "y", "/a"), "redactor.secretVolumes: x is mounted at /a, where y is"},
		{"gateway.podLabels.app\\.kubernetes\\.io/component=x", "gateway.podLabels.app.kubernetes.io/component: is what its pods are found by"},
		{"common.podLabels.app\\.kubernetes\\.io/instance=x", "redactor.podLabels.app.kubernetes.io/instance: is what its pods are found by"},
		{secretEnv("gateway", "WAYBILL_API_KEY"), "gateway.secretEnv: WAYBILL_API_KEY is set by the chart itself"},
		{secretEnv("dispatcher", "WAYBILL_NATS"), "dispatcher.secretEnv: WAYBILL_NATS is set by the chart itself"},
		{"eventlog.extraEnv[0].name=GOMEMLIMIT,eventlog.extraEnv[0].value=1GiB", "eventlog.extraEnv: GOMEMLIMIT is set by the chart itself"},
		{secretEnv("gateway", "K") + ",gateway.extraEnv[0].name=K,gateway.extraEnv[0].value=v", "gateway.extraEnv: K is another variable of its pods"},
		{"dispatcher.config.peer-plaintext=true", "dispatcher.config.peer-plaintext: is set by the chart itself"},
		{"gateway.config.max-start=1", "gateway.config.max-start: is no flag of waybill serve gateway"},
		{"gateway.config.max-handed-out=1", "gateway.config.max-handed-out: is no flag of waybill serve gateway"},
		{"dispatcher.config.max-handed-out=many", "dispatcher.config.max-handed-out: many is no int"},
		{"gateway.config.start-delay=2", "gateway.config.start-delay: 2 is no duration"},
		{"postgresql.secret=db", "at '/postgresql': additional properties 'secret' not allowed"},
		{"postgresql.connections=1", "at '/postgresql/connections': minimum: got 1, want 2"},
		{"postgresql.schema=my-host", "at '/postgresql/schema'"},
		{"coldStore.hotWindow=0", "at '/coldStore/hotWindow'"},
		{"coldStore.bucket=bucket", "at '/coldStore/bucket'"},
		{"dispatcher.config.hot-window=1h", "dispatcher.config.hot-window: is set by the chart itself"},
		{"eventlog.config.postgres-url-file=/url", "eventlog.config.postgres-url-file: is set by the chart itself"},
		{"eventlog.data.size=10", "at '/eventlog/data/size'"},
		{"gateway.secretEnv[0].name=K,gateway.secretEnv[0].secretName=a,gateway.secretEnv[0].secretKey=k,dispatcher.secretEnv[0].name=K," +
			"dispatcher.secretEnv[0].secretName=b,dispatcher.secretEnv[0].secretKey=k", "dispatcher.secretEnv: K is another one's elsewhere"},
		{"acceptor.config.grpc-addr=:1", "acceptor.config.grpc-addr: is set by the chart itself"},
		{"acceptor.assets.serve=true", "acceptor.assets.serve: needs publicUrl"},
		{"gateway.basePath=/a/", "at '/gateway/basePath'"},
		{"gateway.basePath=/a/b,publicUrl=https://waybill.example", "publicUrl: must end with gateway.basePath /a/b"},
		{"gateway.ingress.enabled=true", "gateway.ingress.host: must be set"},
		{"gateway.enabled=false,acceptor.enabled=false,dispatcher.enabled=false,eventlog.enabled=false,redactor.enabled=false", "every service is disabled"},
	} {
		t.Run(c.set, func(t *testing.T) {
			t.Parallel()
			_, messages, ok := template(t, "--set", c.set)
			require.False(t, ok, "was taken")
			require.Contains(t, messages, c.want)
			require.NotContains(t, messages, "nil pointer")
			require.NotContains(t, messages, "user:pass", "a message repeats no password")
		})
	}
}

// All problems are reported together.
func TestValues_AreRefusedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, messages, ok := template(t, "--set", "image.tag=latest,gateway.ingress.enabled=true,nats.url=nats://u@h")
	require.False(t, ok)
	for _, want := range []string{"image.tag", "gateway.ingress.host", "nats.url"} {
		require.Contains(t, messages, want)
	}
}

// Numbers reach the host as written.
func TestValues_OfSettingsKeepTheirDigits(t *testing.T) {
	t.Parallel()
	out, messages, ok := template(t, "--set-json", `acceptor.config={"max-inline-media-bytes": 8388608}`,
		"--set-json", `tracing={"otlpEndpoint": "http://c:4318", "ratio": 0.25}`)
	require.True(t, ok, messages)
	got := settings(t, parse(t, []byte(out)), "acceptor")
	require.Equal(t, "8388608", got["max-inline-media-bytes"])
	require.Equal(t, "0.25", got["trace-ratio"])
}

// A gateway with a base path and without a console.
func TestValues_OfTheGatewayReachItsFlags(t *testing.T) {
	t.Parallel()
	out, messages, ok := template(t, "--set", "gateway.basePath=/a/b,gateway.console.enabled=false,publicUrl=https://waybill.example/a/b")
	require.True(t, ok, messages)
	got := settings(t, parse(t, []byte(out)), "gateway")
	require.Equal(t, "/a/b", got["base-path"])
	require.Equal(t, "false", got["console"])
	require.Equal(t, "https://waybill.example/a/b", got["public-url"])
}

// The schemas reject misspelt names; otherwise, passing them would prove nothing.
func TestSchemas_RefuseMembersThatTheAPIDoesNotKnow(t *testing.T) {
	t.Parallel()
	bin, schemas := os.Getenv("KUBECONFORM"), os.Getenv("KUBE_SCHEMAS")
	if bin == "" || schemas == "" {
		t.Skip("SKIPPED, KUBECONFORM and KUBE_SCHEMAS are not set: run `make deploy-check`")
	}
	conforms := func(doc string) (string, bool) {
		file := filepath.Join(t.TempDir(), "objects.yaml")
		require.NoError(t, os.WriteFile(file, []byte(doc), 0o600))
		out, err := exec.CommandContext(t.Context(), bin, "-strict", "-schema-location", //nolint:gosec // G204: the tool that the Makefile names
			schemas+"/{{ .Group }}/{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json", file).CombinedOutput()
		return string(out), err == nil
	}
	doc, messages, ok := template(t, "-f", filepath.Join(chart, "ci", "ha-values.yaml"))
	require.True(t, ok, messages)
	out, ok := conforms(doc)
	require.True(t, ok, out)
	for _, c := range []struct{ is, misspelt string }{
		{"readOnlyRootFilesystem:", "readOnlyRootFileSystem:"},
		{"terminationGracePeriodSeconds:", "terminationGracePeriod:"},
		{"maxUnavailable:", "maxUnvailable:"},
		{"policyTypes:", "policyType:"},
		{"pollingInterval:", "pollInterval:"},
		{"relabelings:", "relabeling:"},
		{"averageUtilization:", "averageUsage:"},
	} {
		require.Contains(t, doc, c.is)
		out, ok := conforms(strings.Replace(doc, c.is, c.misspelt, 1))
		require.False(t, ok, "%s was taken: %s", c.misspelt, out)
	}
}

// The redactor receives all secret files of the other services.
func TestSecretVolumes_AreTheRedactorsAsWell(t *testing.T) {
	t.Parallel()
	s := render(t, filepath.Join(chart, "ci", "ha-values.yaml"))
	for _, service := range []string{"dispatcher", "redactor"} {
		for _, o := range s.of("Deployment") {
			if o.service() != service {
				continue
			}
			c := spec[deployment](t, o).Template.Spec.Containers[0]
			require.Contains(t, c.Mounts, mount{Name: "models", Path: "/etc/waybill-models", ReadOnly: true}, service)
			require.Contains(t, c.Mounts, mount{Name: "tenant-keys", Path: "/etc/waybill-keys", ReadOnly: true}, service)
			found := false
			for _, e := range c.Env {
				found = found || e.Name == "ANTHROPIC_API_KEY_FILE" && e.Value == "/etc/waybill-models/anthropic"
			}
			require.True(t, found, service)
		}
	}
}
