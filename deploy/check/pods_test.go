package check

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/lifecycle"
)

type deployment struct {
	Replicas *int `yaml:"replicas"`
	Strategy struct {
		RollingUpdate struct {
			MaxUnavailable *int `yaml:"maxUnavailable"`
		} `yaml:"rollingUpdate"`
	} `yaml:"strategy"`
	Selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	} `yaml:"selector"`
	Template struct {
		Metadata struct {
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"metadata"`
		Spec pod `yaml:"spec"`
	} `yaml:"template"`
}

type pod struct {
	ServiceAccountName string      `yaml:"serviceAccountName"`
	Token              *bool       `yaml:"automountServiceAccountToken"`
	ServiceLinks       *bool       `yaml:"enableServiceLinks"`
	GraceSeconds       int         `yaml:"terminationGracePeriodSeconds"`
	HostNetwork        bool        `yaml:"hostNetwork"`
	HostPID            bool        `yaml:"hostPID"`
	HostIPC            bool        `yaml:"hostIPC"`
	Security           security    `yaml:"securityContext"`
	InitContainers     []container `yaml:"initContainers"`
	Containers         []container `yaml:"containers"`
	Volumes            []volume    `yaml:"volumes"`
}

type container struct {
	Name      string   `yaml:"name"`
	Image     string   `yaml:"image"`
	Args      []string `yaml:"args"`
	Env       []env    `yaml:"env"`
	Security  security `yaml:"securityContext"`
	Startup   *probe   `yaml:"startupProbe"`
	Readiness *probe   `yaml:"readinessProbe"`
	Liveness  *probe   `yaml:"livenessProbe"`
	Ports     []struct {
		Name string `yaml:"name"`
		Port int    `yaml:"containerPort"`
	} `yaml:"ports"`
	Resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
	Lifecycle struct {
		PreStop struct {
			Sleep struct {
				Seconds int `yaml:"seconds"`
			} `yaml:"sleep"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
	Mounts []mount `yaml:"volumeMounts"`
}

type mount struct {
	Name     string `yaml:"name"`
	Path     string `yaml:"mountPath"`
	ReadOnly bool   `yaml:"readOnly"`
}

type security struct {
	NonRoot    bool  `yaml:"runAsNonRoot"`
	User       int   `yaml:"runAsUser"`
	ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
	Escalation *bool `yaml:"allowPrivilegeEscalation"`
	Privileged bool  `yaml:"privileged"`
	Seccomp    struct {
		Type string `yaml:"type"`
	} `yaml:"seccompProfile"`
	Capabilities struct {
		Add  []string `yaml:"add"`
		Drop []string `yaml:"drop"`
	} `yaml:"capabilities"`
}

type probe struct {
	HTTP struct {
		Path   string `yaml:"path"`
		Port   string `yaml:"port"`
		Scheme string `yaml:"scheme"`
	} `yaml:"httpGet"`
	Period   int `yaml:"periodSeconds"`
	Failures int `yaml:"failureThreshold"`
}

type env struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
	From  struct {
		Secret *struct {
			Name string `yaml:"name"`
			Key  string `yaml:"key"`
		} `yaml:"secretKeyRef"`
		Resource *struct {
			Resource string `yaml:"resource"`
			Divisor  string `yaml:"divisor"`
		} `yaml:"resourceFieldRef"`
	} `yaml:"valueFrom"`
}

type volume struct {
	Name   string `yaml:"name"`
	Secret *struct {
		Name string `yaml:"secretName"`
		Mode int    `yaml:"defaultMode"`
	} `yaml:"secret"`
	ConfigMap *struct {
		Name string `yaml:"name"`
	} `yaml:"configMap"`
	EmptyDir *struct {
		SizeLimit string `yaml:"sizeLimit"`
	} `yaml:"emptyDir"`
	Ephemeral *struct{} `yaml:"ephemeral"`
	HostPath  *struct{} `yaml:"hostPath"`
}

// eachDeployment runs a check on each service's Deployment in each set.
func eachDeployment(t *testing.T, check func(*testing.T, set, *object, deployment)) {
	t.Helper()
	eachSet(t, func(t *testing.T, s set) {
		all := s.of("Deployment")
		require.NotEmpty(t, all)
		for _, o := range all {
			require.Contains(t, services, o.service(), o.name())
			check(t, s, o, spec[deployment](t, o))
		}
	})
}

// dataDir is the only writable path; the event log uses it.
const dataDir = "/data"

// Pods meet the pod security standard "restricted" and have a read-only file system, except for the
// event log's read model.
func TestPods_HaveNoPrivileges(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, _ set, o *object, d deployment) {
		p := d.Template.Spec
		require.False(t, p.HostNetwork || p.HostPID || p.HostIPC, o.name())
		require.True(t, p.Security.NonRoot, o.name())
		require.Equal(t, "RuntimeDefault", p.Security.Seccomp.Type, o.name())
		for _, v := range p.Volumes {
			require.Nil(t, v.HostPath, "%s: volume %s", o.name(), v.Name)
		}
		for _, c := range slices.Concat(p.InitContainers, p.Containers) {
			require.True(t, c.Security.NonRoot, c.Name)
			require.Positive(t, c.Security.User, c.Name)
			require.True(t, c.Security.ReadOnly, c.Name)
			require.False(t, c.Security.Privileged, c.Name)
			require.NotNil(t, c.Security.Escalation, c.Name)
			require.False(t, *c.Security.Escalation, c.Name)
			require.Equal(t, []string{"ALL"}, c.Security.Capabilities.Drop, c.Name)
			require.Empty(t, c.Security.Capabilities.Add, c.Name)
			require.Equal(t, "RuntimeDefault", c.Security.Seccomp.Type, c.Name)
			for _, m := range c.Mounts {
				require.Equal(t, m.Path != dataDir, m.ReadOnly, "%s: %s", c.Name, m.Path)
			}
		}
	})
}

func TestPods_HaveAnAccountOfTheirOwnAndNoToken(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, s set, o *object, d deployment) {
		p := d.Template.Spec
		require.NotNil(t, p.Token, o.name())
		require.False(t, *p.Token, o.name())
		accounts := 0
		for _, a := range s.of("ServiceAccount") {
			require.NotNil(t, a.Token, a.name())
			require.False(t, *a.Token, a.name())
			if a.Metadata.Name == p.ServiceAccountName && a.service() == o.service() {
				accounts++
			}
		}
		require.Equal(t, 1, accounts, o.name())
	})
}

func TestPods_HaveRequestsAndLimits(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, _ set, o *object, d deployment) {
		for _, c := range d.Template.Spec.Containers {
			for _, what := range []string{"cpu", "memory", "ephemeral-storage"} {
				require.NotEmpty(t, c.Resources.Requests[what], "%s: request of %s", o.name(), what)
				require.NotEmpty(t, c.Resources.Limits[what], "%s: limit of %s", o.name(), what)
			}
		}
	})
}

// The runtime's memory limit is a million bytes per MiB, which leaves five percent for memory
// outside of Go's accounting.
func TestPods_TellTheRuntimeItsLimits(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, _ set, o *object, d deployment) {
		got := map[string]env{}
		for _, e := range d.Template.Spec.Containers[0].Env {
			require.NotContains(t, got, e.Name, "%s: given twice", o.name())
			got[e.Name] = e
		}
		require.Equal(t, "limits.cpu", got["GOMAXPROCS"].From.Resource.Resource)
		require.Equal(t, "limits.memory", got["MEMORY_LIMIT_MIB"].From.Resource.Resource)
		require.Equal(t, "1Mi", got["MEMORY_LIMIT_MIB"].From.Resource.Divisor)
		require.Equal(t, "$(MEMORY_LIMIT_MIB)000000", got["GOMEMLIMIT"].Value)
	})
}

func TestPods_RunAnImageThatStaysTheSame(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, _ set, o *object, d deployment) {
		for _, c := range d.Template.Spec.Containers {
			image, digest, pinned := strings.Cut(c.Image, "@")
			_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
			require.True(t, pinned && strings.HasPrefix(digest, "sha256:") || tagged && tag != "" && tag != "latest", "%s: %s", o.name(), c.Image)
		}
	})
}

// Liveness depends on no other service, so an unavailable log restarts no pod; readiness does. The
// gateway answers on its public port, with TLS if it has a certificate.
func TestPods_AreProbedForWhatEachProbeMeans(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, s set, o *object, d deployment) {
		c := d.Template.Spec.Containers[0]
		port, scheme := "metrics", ""
		if o.service() == "gateway" {
			port, scheme = "http", "HTTP"
			if settings(t, s, o.service())["tls-cert"] != "" {
				scheme = "HTTPS"
			}
		}
		for _, p := range []*probe{c.Startup, c.Readiness, c.Liveness} {
			require.NotNil(t, p, o.name())
			require.Equal(t, port, p.HTTP.Port, o.name())
			require.Equal(t, scheme, p.HTTP.Scheme, o.name())
		}
		require.Equal(t, "/healthz", c.Startup.HTTP.Path)
		require.Equal(t, "/readyz", c.Readiness.HTTP.Path)
		require.Equal(t, "/healthz", c.Liveness.HTTP.Path)
		require.GreaterOrEqual(t, c.Startup.Period*c.Startup.Failures, 60, "reading a store of several thousand frames must fit in it")
	})
}

// drain is the host's maximum shutdown time: each part has StopTimeout, and six parts wait for
// others.
const drain = 6 * lifecycle.StopTimeout

func TestPods_MayFinishWhatTheyHaveBegun(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, _ set, o *object, d deployment) {
		p := d.Template.Spec
		pre := p.Containers[0].Lifecycle.PreStop.Sleep.Seconds
		require.Positive(t, pre, "%s: callers have to learn of the end first", o.name())
		require.GreaterOrEqual(t, time.Duration(p.GraceSeconds-pre)*time.Second, drain, o.name())
		require.NotNil(t, d.Strategy.RollingUpdate.MaxUnavailable, o.name())
		require.Zero(t, *d.Strategy.RollingUpdate.MaxUnavailable, o.name())
	})
}

// Service environment variables of Kubernetes would have the prefix of settings.
func TestPods_GetNoVariablesOfServices(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, _ set, o *object, d deployment) {
		require.NotNil(t, d.Template.Spec.ServiceLinks, o.name())
		require.False(t, *d.Template.Spec.ServiceLinks, o.name())
	})
}

// Secrets are referenced: the chart contains none. Their files are not world-readable, which the
// host would reject.
func TestSecrets_AreReferredTo(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) { require.Empty(t, s.of("Secret")) })
	eachDeployment(t, func(t *testing.T, _ set, o *object, d deployment) {
		p := d.Template.Spec
		for _, v := range p.Volumes {
			if v.Secret != nil {
				require.NotEmpty(t, v.Secret.Name, "%s: %s", o.name(), v.Name)
				require.Zero(t, v.Secret.Mode&0o007, "%s: %s may be read by everybody", o.name(), v.Name)
			}
		}
		for _, e := range p.Containers[0].Env {
			if secretName(e.Name) {
				require.NotNil(t, e.From.Secret, "%s: %s is in plain text", o.name(), e.Name)
			}
		}
		for _, arg := range p.Containers[0].Args {
			require.NotContains(t, arg, "://", "%s: a process list shows it", o.name())
		}
	})
}

// A secret of the host is redacted only if the redactor has it in the same variable. It finds the
// secrets of servers by the servers' names.
func TestSecrets_AreKnownToTheRedactor(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		given := map[string]map[string]env{}
		for _, o := range s.of("Deployment") {
			given[o.service()] = map[string]env{}
			for _, e := range spec[deployment](t, o).Template.Spec.Containers[0].Env {
				if e.From.Secret != nil && e.Name != "WAYBILL_NATS" { // no output has this secret
					given[o.service()][e.Name] = e
				}
			}
		}
		for name, of := range given {
			require.Subset(t, given["redactor"], of, name)
		}
		if len(given["gateway"]) > 0 {
			require.Contains(t, given["gateway"], "WAYBILL_API_KEY")
		}
		for _, o := range s.of("ConfigMap") {
			if o.service() != "dispatcher" {
				continue
			}
			for _, key := range []string{"provider", "mcp-server", "a2a-agent"} {
				for _, server := range lists(t, s, "dispatcher")[key] {
					if strings.Contains(server, "=") {
						require.Contains(t, lists(t, s, "redactor")[key], server)
					}
				}
			}
		}
	})
}

// The file that describes providers names their keys, so the redactor reads it, too, wherever it is.
func TestProviderSettings_AreReadByTheRedactor(t *testing.T) {
	t.Parallel()
	for name, volume := range map[string]string{
		"ConfigMap": configMapVolume("settings", "/settings"),
		"Secret":    secretVolume("dispatcher", "settings", "/settings/"),
	} {
		out, messages, ok := template(t, "-f", chart+"/ci/manifests-values.yaml", "--set", volume+",dispatcher.config.provider-settings=/settings/providers.json")
		require.True(t, ok, messages)
		s := parse(t, []byte(out))
		for _, service := range []string{"dispatcher", "redactor"} {
			require.Equal(t, []string{"/settings/providers.json"}, lists(t, s, service)["provider-settings"], "%s, %s", name, service)
		}
		for _, o := range s.of("Deployment") {
			mounted := false
			for _, m := range spec[deployment](t, o).Template.Spec.Containers[0].Mounts {
				mounted = mounted || m.Name == "settings"
			}
			require.Equal(t, o.service() == "dispatcher" || o.service() == "redactor", mounted, "%s, %s", name, o.service())
		}
	}
}

// The read model can fill its volume: the pod's own ephemeral storage limit is above it.
func TestEventLog_HasRoomForItsReadModel(t *testing.T) {
	t.Parallel()
	gib := func(amount string) int {
		n, err := strconv.Atoi(strings.TrimSuffix(amount, "Gi"))
		require.NoError(t, err, amount)
		return n
	}
	eachDeployment(t, func(t *testing.T, s set, o *object, d deployment) {
		p := d.Template.Spec
		i := slices.IndexFunc(p.Volumes, func(v volume) bool { return v.EmptyDir != nil || v.Ephemeral != nil })
		_, keeps := settings(t, s, o.service())["data-dir"]
		require.Equal(t, keeps, i >= 0, o.name())
		if i < 0 {
			return
		}
		require.Equal(t, "eventlog", o.service())
		require.Equal(t, dataDir, settings(t, s, "eventlog")["data-dir"])
		j := slices.IndexFunc(p.Containers[0].Mounts, func(m mount) bool { return m.Path == dataDir })
		require.GreaterOrEqual(t, j, 0)
		require.Equal(t, p.Volumes[i].Name, p.Containers[0].Mounts[j].Name)
		if dir := p.Volumes[i].EmptyDir; dir != nil {
			require.Greater(t, gib(p.Containers[0].Resources.Limits["ephemeral-storage"]), gib(dir.SizeLimit))
		}
	})
}

// secretName reports whether a variable contains a secret.
func secretName(name string) bool {
	return slices.Contains([]string{"WAYBILL_NATS", "WAYBILL_API_KEY", "WAYBILL_ASSET_KEYS", "WAYBILL_INTERRUPT_KEYS"}, name) ||
		strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN") || strings.Contains(name, "_SECRET_") || strings.Contains(name, "PASSWORD")
}

// Settings are read at start, so a change restarts the pods.
func TestSettings_AreInTheTemplateOfThePods(t *testing.T) {
	t.Parallel()
	eachDeployment(t, func(t *testing.T, _ set, o *object, d deployment) {
		require.Len(t, d.Template.Metadata.Annotations["checksum/config"], 64, o.name())
	})
	before, messages, ok := template(t)
	require.True(t, ok, messages)
	after, messages, ok := template(t, "--set", "acceptor.config.kind-lint=strict")
	require.True(t, ok, messages)
	sums := func(s set) map[string]string {
		out := map[string]string{}
		for _, o := range s.of("Deployment") {
			out[o.service()] = spec[deployment](t, o).Template.Metadata.Annotations["checksum/config"]
		}
		return out
	}
	was, is := sums(parse(t, []byte(before))), sums(parse(t, []byte(after)))
	for _, name := range services {
		require.Equal(t, name == "acceptor", was[name] != is[name], "%s: %s", name, strconv.Quote(is[name]))
	}
}
