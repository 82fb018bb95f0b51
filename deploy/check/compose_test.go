package check

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/test/double/otlp"
	"waybill.dev/waybill/test/harness"
)

const (
	composeFile = "../compose/compose.yaml"
	composeInit = "../compose/init.sh"
	// secretDir is where Compose mounts secrets.
	secretDir = "/run/secrets/"
)

// composed is what the tests read of compose.yaml. `make deploy-check` also checks the whole file
// with the library of docker compose.
type composed struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		Secrets     []string
		Networks    []string
		Configs     []struct{ Source, Target string }
	}
	Configs map[string]struct{ Content string }
	Secrets map[string]struct{ File string }
}

func compose(t *testing.T) composed {
	t.Helper()
	var c composed
	require.NoError(t, yaml.Unmarshal([]byte(source(t, composeFile)), &c))
	require.NotEmpty(t, c.Services)
	return c
}

// Every image has the name of its registry: other engines than Docker search none by themselves.
func TestCompose_NamesImagesInFull(t *testing.T) {
	t.Parallel()
	modules := source(t, "../../go.mod")
	for name, s := range compose(t).Services {
		if s.Image == "waybill:0.1.0-dev" { // built from the sources
			continue
		}
		require.Regexp(t, `^[a-z.]+\.[a-z]+/[a-z/-]+:[0-9.]+$`, s.Image, name)
		if version, ok := strings.CutPrefix(s.Image, "docker.io/library/nats:"); ok {
			require.Contains(t, modules, "github.com/nats-io/nats-server/v2 v"+version+"\n", "the tested version")
		}
	}
}

// Each flag and variable of a service exists, and the files that flags name are mounted.
func TestCompose_SetsFlagsOfTheServices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, runs the binary: run without -short")
	}
	c := compose(t)
	var ours []string
	for name, s := range c.Services {
		if !strings.HasPrefix(s.Image, "waybill:") {
			continue
		}
		ours = append(ours, name)
		require.Equal(t, []string{"serve", name}, s.Command[:2])
		flags := flagsOf(t, "serve", name)
		require.NotEmpty(t, flags)
		for _, arg := range s.Command[2:] {
			flag, value, _ := strings.Cut(arg, "=")
			require.Contains(t, flags, strings.TrimPrefix(flag, "--"), "%s: %s", name, arg)
			if secret, ok := strings.CutPrefix(value, secretDir); ok {
				require.Contains(t, s.Secrets, secret, "%s: %s", name, arg)
			}
		}
		for _, secret := range s.Secrets {
			require.Contains(t, c.Secrets, secret, name)
		}
		for variable := range s.Environment {
			if strings.HasPrefix(variable, "OTEL_") {
				require.Equal(t, "OTEL_EXPORTER_OTLP_ENDPOINT", variable, "a variable of its SDK specification")
				continue
			}
			flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, "WAYBILL_")), "_", "-")
			require.Equal(t, variable, config.EnvName(flag))
			require.Contains(t, flags, flag, "%s: %s", name, variable)
		}
	}
	slices.Sort(ours)
	require.Equal(t, []string{"acceptor", "dispatcher", "eventlog", "gateway", "redactor"}, ours)
}

// Addresses name a service of the file, in a network that both have.
func TestCompose_ReachesEachPeer(t *testing.T) {
	t.Parallel()
	c := compose(t)
	address := regexp.MustCompile(`(?:^|[/@])([a-z]+):([0-9]+)(?:/|$)`)
	for name, s := range c.Services {
		values := slices.Clone(s.Command)
		for _, v := range s.Environment {
			values = append(values, v)
		}
		for _, v := range values {
			_, after, ok := strings.Cut(v, "=")
			if !ok || !strings.HasPrefix(v, "--") {
				after = v
			}
			for _, m := range address.FindAllStringSubmatch(after, -1) {
				peer, known := c.Services[m[1]]
				require.True(t, known, "%s: %s names no service", name, v)
				shared := slices.ContainsFunc(peer.Networks, func(n string) bool { return slices.Contains(s.Networks, n) })
				require.True(t, shared, "%s: %s is in no network of it", name, v)
				port := "=:" + m[2] // of --grpc-addr
				if strings.HasPrefix(peer.Image, "waybill:") {
					require.True(t, slices.ContainsFunc(peer.Command, func(a string) bool { return strings.HasSuffix(a, port) }), "%s: %s listens elsewhere", name, v)
				}
			}
		}
	}
}

// initCompose runs init.sh in a folder of its own. It returns the folder and the variables.
func initCompose(t *testing.T) (dir string, env map[string]string) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIPPED, openssl is not installed")
	}
	dir, env = t.TempDir(), map[string]string{}
	out, err := exec.CommandContext(t.Context(), composeInit, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines, err := os.ReadFile(filepath.Join(dir, ".env")) //nolint:gosec // G304: just written
	require.NoError(t, err)
	for line := range strings.Lines(string(lines)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return dir, env
}

// variable is a variable of the file.
var variable = regexp.MustCompile(`\$\{([A-Z_]+)(:\?[^}]*)?\}`)

// init.sh creates all variables and files that the file needs, once.
func TestCompose_HasAllItsVariablesAndFiles(t *testing.T) {
	t.Parallel()
	dir, env := initCompose(t)
	for _, m := range variable.FindAllStringSubmatch(source(t, composeFile), -1) {
		require.Greater(t, len(env[m[1]]), 2, m[1])
	}
	for name, s := range compose(t).Secrets {
		info, err := os.Stat(filepath.Join(dir, s.File))
		require.NoError(t, err, name)
		require.Zero(t, info.Mode().Perm()&0o077, "%s: others may read it", name)
		require.NotZero(t, info.Size(), name)
	}
	out, err := exec.CommandContext(t.Context(), composeInit, dir).CombinedOutput()
	require.Error(t, err, "keys are not replaced")
	require.Contains(t, string(out), ".env exists")
}

// The services start with the file's flags, variables and keys, and the file's NATS; a run completes.
func TestCompose_StartsTheServices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	c := compose(t)
	dir, env := initCompose(t)
	resolve := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(m string) string { return env[variable.FindStringSubmatch(m)[1]] })
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secrets", "postgres-url"), []byte(postgrestest.Start(t).URL()), 0o600))
	bin, err := natsServer()
	require.NoError(t, err)
	port, monitor, conf := freeport.Take(t), freeport.Take(t), filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(conf, []byte(strings.NewReplacer(
		"/data", dir, "$$NATS_PASSWORD", env["NATS_PASSWORD"], "http_port: 8222", "http: 127.0.0.1:"+monitor,
	).Replace(c.Configs["nats"].Content)), 0o600))
	process(t, dir, bin, "--config", conf, "--addr", "127.0.0.1", "--port", port)

	collector := otlp.New()
	t.Cleanup(collector.Close)
	here := []string{
		secretDir, filepath.Join(dir, "secrets") + "/",
		"nats:4222", "127.0.0.1:" + port, "nats:8222", "127.0.0.1:" + monitor, "http://collector:4318", collector.URL(),
	}
	public := freeport.Take(t)
	for _, pair := range [][2]string{{"redactor", "9092"}, {"acceptor", "9091"}, {"eventlog", "9093"}, {"dispatcher", "9094"}, {"", "9090"}, {"", "8080"}} {
		free := freeport.Take(t)
		if pair[1] == "8080" {
			free = public
		}
		here = append(here, pair[0]+":"+pair[1], map[bool]string{true: ":", false: "127.0.0.1:"}[pair[0] == ""]+free, "=:"+pair[1], "=:"+free)
	}
	at := strings.NewReplacer(here...)
	var hosts []*harness.Host
	for name, s := range c.Services {
		if !strings.HasPrefix(s.Image, "waybill:") {
			continue
		}
		o := harness.Options{}
		for _, arg := range s.Command[2:] {
			o.Args = append(o.Args, at.Replace(arg))
		}
		for variable, value := range s.Environment {
			o.Env = append(o.Env, variable+"="+at.Replace(resolve(value)))
		}
		hosts = append(hosts, harness.BeginWith(t, name, o))
	}
	for _, h := range hosts {
		h.Await()
	}
	client := &harness.Client{Base: "http://127.0.0.1:" + public, Key: env["WAYBILL_API_KEY"], HTTP: &http.Client{Timeout: time.Minute}}
	a, err := client.Do(t.Context(), http.MethodPost, "/v1/workflows", source(t, "../../examples/order/workflow.json"))
	require.NoError(t, err)
	require.Less(t, a.Status, 300, "%s", a.Body)
	a, err = client.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"order","inputs":{"lines":[{"sku":"a","cents":250,"quantity":2}]}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var run struct{ RunID string }
	require.NoError(t, a.JSON(&run))
	events, err := client.Finish(t.Context(), run.RunID)
	require.NoError(t, err)
	require.Equal(t, "run.completed", events[len(events)-1].Type)
}

// The collector's pipelines use what is configured, and NATS is set up as the chart's.
func TestCompose_ConfiguresItsPeers(t *testing.T) {
	t.Parallel()
	c := compose(t)
	for name, s := range c.Services {
		for _, mount := range s.Configs {
			require.Contains(t, c.Configs, mount.Source, name)
			require.Contains(t, s.Command, mount.Target, name)
		}
	}
	var collector struct {
		Receivers, Exporters map[string]any
		Service              struct {
			Pipelines map[string]struct{ Receivers, Exporters []string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(c.Configs["collector"].Content), &collector))
	require.Len(t, collector.Service.Pipelines, 3)
	for name, p := range collector.Service.Pipelines {
		require.NotEmpty(t, p.Receivers, name)
		for _, r := range p.Receivers {
			require.Contains(t, collector.Receivers, r, name)
		}
		for _, e := range p.Exporters {
			require.Contains(t, collector.Exporters, e, name)
		}
	}
	for _, setting := range []string{"sync_interval: always", "max_payload: 8MB", "max_pending: 32MB", "http_port: 8222"} {
		require.Contains(t, c.Configs["nats"].Content, setting)
	}
	require.Contains(t, source(t, "../nats/values.yaml"), "sync_interval: always")
}
