package telemetry

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/suggest"
)

// Variables of the specification that are read here by name.
const (
	varDisabled     = "OTEL_SDK_DISABLED"
	varResource     = "OTEL_RESOURCE_ATTRIBUTES"
	varService      = "OTEL_SERVICE_NAME"
	varSampler      = "OTEL_TRACES_SAMPLER"
	varSamplerArg   = "OTEL_TRACES_SAMPLER_ARG"
	varPropagators  = "OTEL_PROPAGATORS"
	varContent      = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	varTemporality  = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
	varAggregation  = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
	varExemplars    = "OTEL_METRICS_EXEMPLAR_FILTER"
	varLimitCount   = "OTEL_ATTRIBUTE_COUNT_LIMIT"
	varLimitLength  = "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
	varLogCount     = "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT"
	varLogLength    = "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT"
	varExporterOTLP = "OTEL_EXPORTER_OTLP_"
	varInterval     = "OTEL_METRIC_EXPORT_INTERVAL"
	varWait         = "OTEL_METRIC_EXPORT_TIMEOUT"
	varConfig       = "OTEL_CONFIG_FILE"
	varConfigOld    = "OTEL_EXPERIMENTAL_CONFIG_FILE"
)

// bounds are those of valid numbers.
type bounds struct{ least, most int }

const (
	// maxNumber is the largest number that the specification requires.
	maxNumber = math.MaxInt32
	// maxQueue limits queues and batches: the SDK reserves their memory at the start.
	maxQueue = 1 << 20
)

// counts are variables with a number, and its bounds. The SDK reads them itself, apart from those that
// a constant above names, and those of batches.
var counts = map[string]bounds{
	"OTEL_BSP_SCHEDULE_DELAY":                {0, maxNumber},
	"OTEL_BSP_EXPORT_TIMEOUT":                {0, maxNumber},
	"OTEL_BSP_MAX_QUEUE_SIZE":                {1, maxQueue},
	"OTEL_BSP_MAX_EXPORT_BATCH_SIZE":         {1, maxQueue},
	"OTEL_BLRP_SCHEDULE_DELAY":               {0, maxNumber},
	"OTEL_BLRP_EXPORT_TIMEOUT":               {0, maxNumber},
	"OTEL_BLRP_MAX_QUEUE_SIZE":               {1, maxQueue},
	"OTEL_BLRP_MAX_EXPORT_BATCH_SIZE":        {1, maxQueue},
	varInterval:                              {1, maxNumber},
	varWait:                                  {0, maxNumber},
	varLimitCount:                            {0, maxNumber},
	varLimitLength:                           {0, maxNumber},
	"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT":        {0, maxNumber},
	"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": {0, maxNumber},
	"OTEL_SPAN_EVENT_COUNT_LIMIT":            {0, maxNumber},
	"OTEL_SPAN_LINK_COUNT_LIMIT":             {0, maxNumber},
	"OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT":       {0, maxNumber},
	"OTEL_LINK_ATTRIBUTE_COUNT_LIMIT":        {0, maxNumber},
	varLogCount:                              {0, maxNumber},
	varLogLength:                             {0, maxNumber},
}

// choices are variables with one of some supported values, the default first.
var choices = map[string][]string{
	varTemporality: {"cumulative"},
	varAggregation: {"explicit_bucket_histogram"},
	varExemplars:   {"trace_based", "always_on", "always_off"},
}

// unsupported are values that the specification has and this host does not support. It starts with
// another one and a warning, because platforms set the same variables for all their programs.
var unsupported = map[string][]string{
	varSampler:     {"jaeger_remote", "parentbased_jaeger_remote", "xray"},
	varTemporality: {"delta", "lowmemory"},
	varAggregation: {"base2_exponential_bucket_histogram"},
	varContent:     {"event_only"},
}

// elsewhere are variables of the specification that have no effect, and the setting to use instead.
var elsewhere = map[string]string{
	"OTEL_LOG_LEVEL":                "--log-level",
	"OTEL_EXPORTER_PROMETHEUS_HOST": "--metrics-addr",
	"OTEL_EXPORTER_PROMETHEUS_PORT": "--metrics-addr",
	"OTEL_EXPORTER_ZIPKIN_ENDPOINT": varExporterOTLP + "TRACES_ENDPOINT",
}

// prefixes are those of variables that do not apply to all signals.
var prefixes = map[string][]signal{
	"OTEL_TRACES_":               {traces},
	"OTEL_BSP_":                  {traces},
	"OTEL_SPAN_":                 {traces},
	"OTEL_EVENT_":                {traces},
	"OTEL_LINK_":                 {traces},
	varContent:                   {traces},
	varExporterOTLP + "TRACES_":  {traces},
	"OTEL_METRIC_":               {metrics},
	"OTEL_METRICS_":              {metrics},
	varExporterOTLP + "METRICS_": {metrics},
	"OTEL_BLRP_":                 {logs},
	"OTEL_LOGRECORD_":            {logs},
	varExporterOTLP + "LOGS_":    {logs},
	"OTEL_ATTRIBUTE_":            {traces, logs},
}

// perSignal are the suffixes of variables that each signal can override.
var perSignal = []string{
	"ENDPOINT", "PROTOCOL", "HEADERS", "COMPRESSION", "TIMEOUT", "INSECURE",
	"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY",
}

// variables reads the environment, and collects its errors. An empty variable counts as
// unset, as the specification demands.
type variables struct {
	lookup   func(string) (string, bool)
	errs     []error
	warnings []string
	// disabled is true if no signal is exported, regardless of other settings.
	disabled bool
	// exported are the signals that are exported, unless disabled.
	exported map[signal]bool
}

func (v *variables) export(s signal) {
	if v.exported == nil {
		v.exported = map[signal]bool{}
	}
	v.exported[s] = true
}

// applies reports whether a variable has an effect.
func (v *variables) applies(name string) bool {
	if name == varDisabled || name == varPropagators || slices.ContainsFunc(signals, func(s signal) bool { return s.exporterVariable() == name }) {
		return true
	}
	of := signals
	for prefix, some := range prefixes {
		if strings.HasPrefix(name, prefix) {
			of = some
		}
	}
	return slices.ContainsFunc(of, func(s signal) bool { return v.exported[s] })
}

func (v *variables) get(name string) string {
	value, _ := v.lookup(name)
	return strings.TrimSpace(value)
}

// refuse records an error, or a warning if the variable has no effect. The text must not contain a
// value that may be secret.
func (v *variables) refuse(name, format string, args ...any) {
	err := fmt.Errorf("environment "+name+": "+format, args...)
	switch {
	case v.disabled && name == varPropagators: // the specification applies them nevertheless
		v.warnings = append(v.warnings, err.Error()+"; used instead: tracecontext")
	case v.disabled:
	case v.applies(name):
		v.errs = append(v.errs, err)
	default:
		v.warnings = append(v.warnings, err.Error()+"; ignored, as no signal that it applies to is exported")
	}
}

// unsupported returns the value of a variable if only the specification has it, else "".
func (v *variables) unsupported(name string) string {
	if value := strings.ToLower(v.get(name)); slices.Contains(unsupported[name], value) {
		return value
	}
	return ""
}

// replace warns that another value is used.
func (v *variables) replace(name, value, instead string) {
	if !v.disabled {
		v.warnings = append(v.warnings, fmt.Sprintf("environment %s: %s is not supported; used instead: %s", name, value, instead))
	}
}

// of returns a variable of a signal: its own if set, else that of all signals.
func (v *variables) of(s signal, suffix string) (name, value string) {
	name = varExporterOTLP + string(s) + "_" + suffix
	if value = v.get(name); value != "" {
		return name, value
	}
	name = varExporterOTLP + suffix
	return name, v.get(name)
}

func (v *variables) boolean(name string) bool {
	switch value := strings.ToLower(v.get(name)); value {
	case "true":
		return true
	case "", "false":
		return false
	default:
		v.refuse(name, "%q: want true or false", value)
		return false
	}
}

// choice returns one of the values, the first if the variable is unset or its value is unsupported.
func (v *variables) choice(name string, allowed ...string) string {
	value := strings.ToLower(v.get(name))
	if value == "" {
		return allowed[0]
	}
	if v.unsupported(name) != "" {
		v.replace(name, value, allowed[0])
		return allowed[0]
	}
	if !slices.Contains(allowed, value) {
		v.refuse(name, "%q: want %s", value, list(slices.DeleteFunc(slices.Clone(allowed), func(a string) bool { return a == "" })))
		return allowed[0]
	}
	return value
}

// list renders alternatives.
func list(of []string) string {
	if len(of) < 2 {
		return strings.Join(of, "")
	}
	return strings.Join(of[:len(of)-1], ", ") + " or " + of[len(of)-1]
}

// number returns a variable of counts.
func (v *variables) number(name string) (n int, set bool) {
	value := v.get(name)
	if value == "" {
		return 0, false
	}
	within := counts[name]
	n, err := strconv.Atoi(value)
	if err != nil || n < within.least || n > within.most {
		v.refuse(name, "%q: want an integer from %d to %d", value, within.least, within.most)
		return 0, false
	}
	return n, true
}

// timeout returns a time limit. 0 means no limit: the longest of the specification is used.
func timeout(milliseconds int) time.Duration {
	if milliseconds == 0 {
		milliseconds = maxNumber
	}
	return time.Duration(milliseconds) * time.Millisecond
}

// checkRest checks what the SDK reads itself, and would ignore if invalid.
func (v *variables) checkRest() {
	for name := range counts {
		v.number(name)
	}
	for name, allowed := range choices {
		v.choice(name, allowed...)
	}
	for _, prefix := range []string{"OTEL_BSP_", "OTEL_BLRP_"} {
		q, hasQueue := v.number(prefix + queueSize)
		b, hasBatch := v.number(prefix + batchSize)
		if hasQueue && hasBatch && b > q {
			v.refuse(prefix+batchSize, "%d: want at most %s%s, which is %d", b, prefix, queueSize, q)
		}
	}
	for name, other := range elsewhere {
		if v.get(name) != "" && !v.disabled {
			v.warnings = append(v.warnings, fmt.Sprintf("environment %s has no effect; use %s", name, other))
		}
	}
	for _, name := range []string{varConfig, varConfigOld} {
		if v.get(name) != "" {
			v.replace(name, "a configuration file of OpenTelemetry", "variables and flags")
		}
	}
}

// err returns all errors, joined, in a fixed order. The same value can be read twice.
func (v *variables) err() error {
	slices.SortFunc(v.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(slices.CompactFunc(v.errs, func(a, b error) bool { return a.Error() == b.Error() })...)
}

// known returns the names of all variables that have an effect.
func known() []string {
	names := []string{varDisabled, varResource, varService, varSampler, varSamplerArg, varPropagators, varContent}
	for name := range counts {
		names = append(names, name)
	}
	for name := range choices {
		names = append(names, name)
	}
	for _, suffix := range perSignal {
		names = append(names, varExporterOTLP+suffix)
		for _, s := range signals {
			names = append(names, varExporterOTLP+string(s)+"_"+suffix)
		}
	}
	for _, s := range signals {
		names = append(names, s.exporterVariable())
	}
	return names
}

// misspelled returns a warning for each variable whose name is nearly that of a known one.
// environ has the form of os.Environ.
func misspelled(environ []string) []string {
	var out []string
	all := known()
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "OTEL_") || slices.Contains(all, name) || elsewhere[name] != "" {
			continue
		}
		for _, k := range all {
			if suggest.Distance(name, k) <= maxTypos {
				out = append(out, fmt.Sprintf("the environment variable %s has no effect; did you mean %s?", name, k))
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// maxTypos is the distance up to which an unknown name counts as misspelled.
const maxTypos = 2
