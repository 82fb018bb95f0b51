package check

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	rulesFile     = chart + "/files/waybill.rules.yaml"
	dashboardFile = chart + "/files/waybill.dashboard.json"
	client        = `"github.com/prometheus/client_golang/prometheus"`
)

type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var doc struct {
		Groups []struct {
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(source(t, rulesFile)), &doc))
	var all []alert
	for _, g := range doc.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

func panels(t *testing.T) []panel {
	t.Helper()
	var doc struct {
		Panels []panel `json:"panels"`
	}
	require.NoError(t, json.Unmarshal([]byte(source(t, dashboardFile)), &doc))
	require.NotEmpty(t, doc.Panels)
	return doc.Panels
}

var (
	metric = regexp.MustCompile(`\b(?:waybill|openwop|go|process)_[a-z0-9_]+`)
	braces = regexp.MustCompile(`\{[^}]*\}|\b(?:by|on) \([^)]*\)`)
	suffix = regexp.MustCompile(`_(?:bucket|sum|count)$`)
)

// metricsOf returns the metric names of an expression; labels may look similar.
func metricsOf(expr string) []string {
	return metric.FindAllString(braces.ReplaceAllString(expr, " "), -1)
}

// used are the metrics of rules and dashboard, with their positions.
func used(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, a := range alerts(t) {
		for _, name := range metricsOf(a.Expr) {
			out[name] = "alert " + a.Alert
		}
	}
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			for _, name := range metricsOf(target.Expr) {
				out[name] = "panel " + p.Title
			}
		}
	}
	return out
}

// literals are the string literals of each package that registers metrics.
var literals = sync.OnceValues(func() (map[string]map[string]bool, error) {
	all := map[string]map[string]bool{}
	for _, root := range []string{"../../cmd", "../../internal", "../../services"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == client }) {
				return nil
			}
			dir := filepath.Dir(path)
			if all[dir] == nil {
				all[dir] = map[string]bool{}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil {
						all[dir][strings.Trim(s, "_")] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

// spelled reports whether a package registers a metric: its name consists of at most three of the
// package's literals, such as namespace, subsystem and name.
func spelled(texts map[string]bool, name string, parts int) bool {
	if texts[name] {
		return true
	}
	if parts == 1 {
		return false
	}
	for i := range name {
		if name[i] == '_' && texts[name[:i]] && spelled(texts, name[i+1:], parts-1) {
			return true
		}
	}
	return false
}

// runtimeMetrics are the default metrics of the client library.
func runtimeMetrics(t *testing.T) map[string]bool {
	t.Helper()
	reg := prometheus.NewRegistry()
	require.NoError(t, reg.Register(collectors.NewGoCollector()))
	require.NoError(t, reg.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	families, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]bool{}
	for _, f := range families {
		out[f.GetName()] = true
	}
	return out
}

// Every metric of alerts and panels exists; otherwise, the alert never fires and the panel is
// empty.
func TestMetrics_AreServed(t *testing.T) {
	t.Parallel()
	texts, err := literals()
	require.NoError(t, err)
	require.NotEmpty(t, texts)
	served := func(name string) bool {
		for _, of := range texts {
			if spelled(of, name, 3) {
				return true
			}
		}
		return false
	}
	own := runtimeMetrics(t)
	for name, where := range used(t) {
		require.True(t, own[name] || served(name) || served(suffix.ReplaceAllString(name, "")), "%s: no service exports %s", where, name)
	}
}

func TestSpelled_FindsNamesInWhateverPartsTheyAreWritten(t *testing.T) {
	t.Parallel()
	texts := map[string]bool{"waybill": true, "acceptor": true, "errors_total": true, "openwop": true, "run_created": true, "total": true}
	for name, want := range map[string]bool{
		"waybill_acceptor_errors_total": true, "openwop_run_created_total": true, "waybill_errors_total": true,
		"waybill_acceptor_error_total": false, "waybill_acceptor": true, "waybill_acceptor_total_total": false, "waybill_": false,
	} {
		require.Equal(t, want, spelled(texts, name, 3), name)
	}
	require.Equal(t, []string{"waybill_serving", "openwop_queue_depth"},
		metricsOf(`min by (namespace, waybill_x) (waybill_serving{openwop_run_status="failed"}) and on (pod) openwop_queue_depth`))
}

// The runbook has a section for every alert.
func TestAlerts_SayHowBadItIsAndWhatToDo(t *testing.T) {
	t.Parallel()
	page := source(t, "../../docs/runbook.md")
	sections := map[string]string{}
	for _, section := range strings.Split(page, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		sections[name] = text
	}
	tests := source(t, "../prometheus/rules_test.yaml")
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		require.False(t, seen[a.Alert], "%s: twice", a.Alert)
		seen[a.Alert] = true
		require.Contains(t, []string{"critical", "warning"}, a.Labels["severity"], a.Alert)
		require.NotEmpty(t, a.Annotations["summary"], a.Alert)
		require.Equal(t, "docs/runbook.md#"+strings.ToLower(a.Alert), a.Annotations["runbook_url"], a.Alert)
		require.NotEmpty(t, sections[a.Alert], "%s: docs/runbook.md does not say what to do", a.Alert)
		for _, part := range []string{"Means", "Look", "Do", "Runs"} {
			require.Contains(t, sections[a.Alert], "\n- **"+part+"** ", a.Alert)
		}
		require.Contains(t, tests, "\n      - alertname: "+a.Alert+"\n", "%s: has no test in which it fires or does not", a.Alert)
	}
	for name := range sections {
		require.True(t, seen[name], "docs/runbook.md: %s is not an alert", name)
	}
}

func TestDashboard_HasAnExpressionInEachPanel(t *testing.T) {
	t.Parallel()
	rows := 0
	for _, p := range panels(t) {
		require.NotEmpty(t, p.Title)
		if len(p.Targets) == 0 {
			rows++
		}
		for _, target := range p.Targets {
			require.NotEmpty(t, metricsOf(target.Expr), p.Title)
			require.Contains(t, target.Expr, `namespace=~"$namespace"`, "%s: shows other namespaces, too", p.Title)
		}
	}
	require.Positive(t, rows)
}
