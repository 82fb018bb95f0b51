package check

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type networkPolicy struct {
	PodSelector selector `yaml:"podSelector"`
	Types       []string `yaml:"policyTypes"`
	Ingress     []struct {
		From  []peer    `yaml:"from"`
		Ports []netPort `yaml:"ports"`
	} `yaml:"ingress"`
	Egress []struct {
		To    []peer    `yaml:"to"`
		Ports []netPort `yaml:"ports"`
	} `yaml:"egress"`
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type peer struct {
	Pods       *selector `yaml:"podSelector"`
	Namespaces *selector `yaml:"namespaceSelector"`
	IPs        *struct {
		CIDR   string   `yaml:"cidr"`
		Except []string `yaml:"except"`
	} `yaml:"ipBlock"`
}

// component is the peer's service in this release; empty: an external peer.
func (p peer) component() string {
	if p.Pods == nil || p.Namespaces != nil {
		return ""
	}
	return p.Pods.MatchLabels["app.kubernetes.io/component"]
}

type netPort struct {
	Port     string `yaml:"port"`
	Protocol string `yaml:"protocol"`
}

type service struct {
	Type      string            `yaml:"type"`
	ClusterIP string            `yaml:"clusterIP"`
	NotReady  bool              `yaml:"publishNotReadyAddresses"`
	Selector  map[string]string `yaml:"selector"`
	Ports     []struct {
		Name   string `yaml:"name"`
		Port   int    `yaml:"port"`
		Target string `yaml:"targetPort"`
	} `yaml:"ports"`
}

// matches reports whether a selector matches labels; an empty selector matches all.
func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// lists are the settings of a service, as the service parses them.
func lists(t *testing.T, s set, service string) map[string][]string {
	t.Helper()
	for _, o := range s.of("ConfigMap") {
		if o.service() != service {
			continue
		}
		var got map[string]yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte(o.Data["config.yaml"]), &got), o.name())
		out := map[string][]string{}
		for k, v := range got {
			all := []string{v.Value}
			if v.Kind == yaml.SequenceNode {
				require.NoError(t, v.Decode(&all))
			}
			out[k] = all
		}
		return out
	}
	t.Fatalf("no settings of %s", service)
	return nil
}

// settings are the settings with a single value.
func settings(t *testing.T, s set, service string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for k, v := range lists(t, s, service) {
		out[k] = v[0]
	}
	return out
}

// edges are the calls between services, derived from settings: a setting named after a service
// holds its address.
func edges(t *testing.T, s set) []string {
	t.Helper()
	var out []string
	for _, o := range s.of("Deployment") {
		for key := range settings(t, s, o.service()) {
			if slices.Contains(services, key) {
				out = append(out, o.service()+" → "+key)
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestNetwork_LetsThroughWhatTheSettingsNameAndNothingElse(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		var in, out []string
		for _, o := range s.of("NetworkPolicy") {
			np := spec[networkPolicy](t, o)
			require.ElementsMatch(t, []string{"Ingress", "Egress"}, np.Types, o.name())
			for _, rule := range np.Ingress {
				for _, p := range rule.From {
					if c := p.component(); c != "" {
						in = append(in, c+" → "+o.service())
					}
				}
			}
			for _, rule := range np.Egress {
				for _, p := range rule.To {
					if c := p.component(); c != "" {
						out = append(out, o.service()+" → "+c)
					}
				}
			}
		}
		slices.Sort(in)
		slices.Sort(out)
		require.Equal(t, edges(t, s), in, "ingress")
		require.Equal(t, edges(t, s), out, "egress")
	})
}

// The edges of the whole host, as in docs/architecture.md: the event log calls no service, and no
// service calls the gateway.
func TestNetwork_IsThatOfTheArchitecture(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"acceptor → redactor",
		"dispatcher → acceptor", "dispatcher → eventlog", "dispatcher → redactor",
		"gateway → acceptor", "gateway → dispatcher", "gateway → eventlog", "gateway → redactor",
	}, edges(t, committed(t)))
}

func TestNetwork_DeniesWhatIsNotNamed(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		denied := func(labels map[string]string) bool {
			for _, o := range s.of("NetworkPolicy") {
				np := spec[networkPolicy](t, o)
				if len(np.Ingress) == 0 && len(np.Egress) == 0 && len(np.Types) == 2 && matches(np.PodSelector.MatchLabels, labels) {
					return true
				}
			}
			return false
		}
		for _, o := range s.of("Deployment") {
			require.True(t, denied(spec[deployment](t, o).Template.Metadata.Labels), o.name())
		}
	})
}

// Each port of a Service targets a pod port that a policy opens.
func TestNetwork_OpensEachPortOfAService(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		for _, o := range s.of("Service") {
			svc := spec[service](t, o)
			open, listens := map[string]bool{}, map[string]bool{}
			for _, d := range s.of("Deployment") {
				dep := spec[deployment](t, d)
				if !matches(svc.Selector, dep.Template.Metadata.Labels) {
					continue
				}
				for _, p := range dep.Template.Spec.Containers[0].Ports {
					listens[p.Name] = true
				}
				for _, n := range s.of("NetworkPolicy") {
					np := spec[networkPolicy](t, n)
					if !matches(np.PodSelector.MatchLabels, dep.Template.Metadata.Labels) {
						continue
					}
					for _, rule := range np.Ingress {
						for _, p := range rule.Ports {
							open[p.Port] = true
						}
					}
				}
			}
			for _, p := range svc.Ports {
				require.True(t, listens[p.Target], "%s: no pod listens at %s", o.name(), p.Target)
				if p.Name == "metrics" && !open["metrics"] {
					continue // no scraping: networkPolicy.metricsFrom is empty
				}
				require.True(t, open[p.Target], "%s: no policy opens %s", o.name(), p.Target)
			}
		}
	})
}

// Callers use exactly the port that the callee serves.
func TestNetwork_LeadsToAddressesThatAreServed(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		served := map[string]bool{}
		for _, o := range s.of("Service") {
			for _, p := range spec[service](t, o).Ports {
				served[fmt.Sprintf("%s.%s.svc:%d", o.Metadata.Name, namespace, p.Port)] = true
			}
		}
		for _, o := range s.of("Deployment") {
			conf := settings(t, s, o.service())
			for _, name := range services {
				if addr := conf[name]; addr != "" {
					require.True(t, served[addr], "%s: no service serves %s at %s", o.name(), name, addr)
				}
			}
			for _, p := range spec[deployment](t, o).Template.Spec.Containers[0].Ports {
				require.Equal(t, fmt.Sprintf(":%d", p.Port), conf[p.Name+"-addr"], "%s: port %s", o.name(), p.Name)
			}
		}
	})
}

// gRPC clients must see all pods; only the gateway's clients are external.
func TestServices_AreHeadlessBetweenThemselves(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		for _, o := range s.of("Service") {
			svc := spec[service](t, o)
			require.Equal(t, o.service() != "gateway" || strings.HasSuffix(o.Metadata.Name, "-metrics"), svc.ClusterIP == "None", o.name())
			require.Equal(t, o.service() == "acceptor" || o.service() == "dispatcher", svc.NotReady, "%s: publishes addresses that are not ready only for acceptor and dispatcher", o.name())
			for _, p := range svc.Ports {
				if o.service() == "gateway" && svc.ClusterIP != "None" {
					require.NotEqual(t, "metrics", p.Name, "metrics and profiles must not be on the clients' Service")
				}
			}
		}
	})
}

// Only services that call models, tools or webhooks may leave the cluster, and these rules do not
// open cluster addresses.
func TestNetwork_OnlyDispatcherAndGatewayReachTheInternet(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		for _, o := range s.of("NetworkPolicy") {
			for _, rule := range spec[networkPolicy](t, o).Egress {
				for _, p := range rule.To {
					if p.IPs == nil || p.IPs.CIDR != "0.0.0.0/0" {
						continue
					}
					require.Contains(t, []string{"dispatcher", "gateway"}, o.service(), o.name())
					for _, private := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} {
						require.Contains(t, p.IPs.Except, private, o.name())
					}
				}
			}
		}
	})
}

// Only event logs that share a read model, and services that read a cold store, can reach PostgreSQL.
func TestNetwork_OnlyItsReadersReachPostgreSQL(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		for _, o := range s.of("NetworkPolicy") {
			open := false
			for _, rule := range spec[networkPolicy](t, o).Egress {
				open = open || slices.ContainsFunc(rule.Ports, func(p netPort) bool { return p.Port == "5432" })
			}
			var model, cold bool
			if o.service() != "" { // of the pods of a service
				given := settings(t, s, o.service())
				_, model = given["postgres-url-file"]
				_, cold = given["cold-postgres-url-file"]
			}
			require.Equal(t, model || cold, open, o.name())
		}
	})
}

// egress are the policy's ports without a specific address.
func egress(t *testing.T, s set, service string) []string {
	t.Helper()
	var ports []string
	for _, o := range s.of("NetworkPolicy") {
		if o.service() != service {
			continue
		}
		for _, rule := range spec[networkPolicy](t, o).Egress {
			if len(rule.To) > 0 {
				continue
			}
			for _, p := range rule.Ports {
				ports = append(ports, p.Port)
			}
		}
	}
	return ports
}

// The port is the URL's port, unless another one is set: policies match pod ports, and a Service
// may map them.
func TestNetwork_OpensThePortsOfURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set  []string
		want []string
	}{
		{nil, []string{"4222"}},
		{[]string{"nats.url=nats://a:4333"}, []string{"4333"}},
		{[]string{`nats.url=nats://a:4333\, nats://b:4334\,tls://[fd00::1]\,nats://c:4333`}, []string{"4333", "4334", "4222"}},
		{[]string{"nats.url=a:4333"}, []string{"4333"}},
		{[]string{"nats.url=wss://a/path:7"}, []string{"443"}},
		{[]string{"nats.url=nats://a:4333", "networkPolicy.natsPort=5333"}, []string{"5333"}},
		{[]string{"nats.monitor={http://n0:9999,http://n1:9998/}"}, []string{"4222", "9999", "9998"}},
		{[]string{"nats.monitor={https://n0}"}, []string{"4222", "443"}},
		{[]string{"nats.monitor={http://n0:9999}", "networkPolicy.natsMonitorPort=8222"}, []string{"4222", "8222"}},
		{[]string{"tracing.otlpEndpoint=http://x:9999"}, []string{"4222", "9999"}},
		{[]string{"tracing.otlpEndpoint=http://x/otlp"}, []string{"4222", "80"}},
		{[]string{"tracing.otlpEndpoint=http://user:1@[fd00::1]:9999/otlp", "networkPolicy.otlpPort=4318"}, []string{"4222", "4318"}},
		{[]string{"tracing.otlpEndpoint=http://user:1@[fd00::1]:9999/otlp"}, []string{"4222", "9999"}},
	} {
		t.Run(strings.Join(c.set, " "), func(t *testing.T) {
			t.Parallel()
			args := []string{}
			for _, s := range c.set {
				args = append(args, "--set", s)
			}
			out, messages, ok := template(t, args...)
			require.True(t, ok, messages)
			require.Equal(t, c.want, egress(t, parse(t, []byte(out)), "dispatcher"))
		})
	}
}

// Clients that fetch assets must not be able to submit envelopes.
func TestNetwork_OpensAssetsToTheirOwnPeersAlone(t *testing.T) {
	t.Parallel()
	envelopes := filepath.Join(chart, "ci", "envelopes-values.yaml")
	for _, c := range []struct {
		set, assets []string
	}{
		{nil, []string{"everybody"}},
		{[]string{"--set", "networkPolicy.assetsFrom[0].namespaceSelector.matchLabels.team=web"}, []string{"web"}},
		{[]string{"--set", "acceptor.assets.serve=false"}, nil},
	} {
		out, messages, ok := template(t, append([]string{"-f", envelopes}, c.set...)...)
		require.True(t, ok, messages)
		let := map[string][]string{} // by port
		for _, o := range parse(t, []byte(out)).of("NetworkPolicy") {
			if o.service() != "acceptor" {
				continue
			}
			for _, rule := range spec[networkPolicy](t, o).Ingress {
				from := []string{}
				for _, p := range rule.From {
					require.NotNil(t, p.Namespaces)
					from = append(from, slices.Collect(maps.Values(p.Namespaces.MatchLabels))...)
				}
				if len(rule.From) == 0 {
					from = []string{"everybody"}
				}
				for _, p := range rule.Ports {
					let[p.Port] = append(let[p.Port], from...)
				}
			}
		}
		require.Equal(t, c.assets, let["assets"], "%v", c.set)
		require.Equal(t, []string{"agents"}, let["grpc"], "%v", c.set)
	}
}

// Every selector matches only the pods of its own service.
func TestSelectors_KeepServicesApart(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		pods := map[string]map[string]string{}
		for _, o := range s.of("Deployment") {
			d := spec[deployment](t, o)
			require.Subset(t, d.Template.Metadata.Labels, d.Selector.MatchLabels, o.name())
			pods[o.service()] = d.Template.Metadata.Labels
		}
		for _, o := range slices.Concat(s.of("Service"), s.of("NetworkPolicy"), s.of("PodDisruptionBudget"), s.of("Deployment")) {
			if o.service() == "" {
				continue // shared by all services
			}
			v := spec[struct {
				Selector    yaml.Node `yaml:"selector"`
				PodSelector selector  `yaml:"podSelector"`
			}](t, o)
			labels := v.PodSelector.MatchLabels
			if o.Kind == "Service" {
				require.NoError(t, v.Selector.Decode(&labels))
			} else if o.Kind != "NetworkPolicy" {
				var sel selector
				require.NoError(t, v.Selector.Decode(&sel))
				labels = sel.MatchLabels
			}
			var taken []string
			for name, of := range maps.All(pods) {
				if matches(labels, of) {
					taken = append(taken, name)
				}
			}
			require.Equal(t, []string{o.service()}, taken, o.name())
		}
	})
}
