package telemetry_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/obs/telemetry"
)

const secret = "hunter2-hunter2"

// endpoint makes all signals exported.
const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318"

func TestRead_ReportsEveryInvalidSettingWithoutItsSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.pem")
	require.NoError(t, os.WriteFile(file, []byte("no certificate"), 0o600))
	ratio := 1.5
	for name, tc := range map[string]struct {
		flags telemetry.Flags
		env   []string
		want  string
	}{
		"protocol":             {env: []string{"OTEL_EXPORTER_OTLP_PROTOCOL=thrift"}, want: "grpc, http/protobuf or http/json"},
		"protocol of a signal": {env: []string{"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=http"}, want: "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL"},
		"protocol flag":        {flags: telemetry.Flags{Protocol: "thrift"}, want: "--otlp-protocol"},
		"endpoint":             {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318"}, want: "must be a URL"},
		"endpoint of a signal": {env: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://user:" + secret + "@h"}, want: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		"endpoint flag":        {flags: telemetry.Flags{Endpoint: "user:" + secret + "@h:4318"}, want: "--otlp-endpoint"},
		"password":             {flags: telemetry.Flags{Endpoint: "https://user:" + secret + "@h:4318"}, want: "HEADERS=Authorization=Basic"},
		"query":                {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318/?token=" + secret}, want: "without ?"},
		"port":                 {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:99999"}, want: "1 to 65535"},
		"headers":              {env: []string{"OTEL_EXPORTER_OTLP_HEADERS=a=b," + secret}, want: "header no. 2"},
		"header name":          {env: []string{"OTEL_EXPORTER_OTLP_HEADERS=a b=" + secret}, want: "header no. 1"},
		"header value":         {env: []string{"OTEL_EXPORTER_OTLP_HEADERS=a=%0a" + secret}, want: "header no. 1"},
		"header escape":        {env: []string{"OTEL_EXPORTER_OTLP_METRICS_HEADERS=a=%zz" + secret}, want: "OTEL_EXPORTER_OTLP_METRICS_HEADERS"},
		"compression":          {env: []string{"OTEL_EXPORTER_OTLP_COMPRESSION=zstd"}, want: "gzip or none"},
		"a header in gRPC":     {env: []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_HEADERS=a=%C3%BC" + secret}, want: "ASCII"},
		"a name in gRPC":       {env: []string{"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_LOGS_HEADERS=a$b=" + secret}, want: "ASCII"},
		"long timeout":         {env: []string{"OTEL_EXPORTER_OTLP_TIMEOUT=9223372036854775807"}, want: "from 0 (no limit) to 2147483647"},
		"negative timeout":     {env: []string{"OTEL_EXPORTER_OTLP_LOGS_TIMEOUT=-1"}, want: "from 0 (no limit)"},
		"huge queue":           {env: []string{"OTEL_BSP_MAX_QUEUE_SIZE=9223372036854775807"}, want: "from 1 to 1048576"},
		"large batch":          {env: []string{"OTEL_BLRP_MAX_EXPORT_BATCH_SIZE=1048577"}, want: "from 1 to 1048576"},
		"long interval":        {env: []string{"OTEL_METRIC_EXPORT_INTERVAL=99999999999999"}, want: "from 1 to 2147483647"},
		"resource bytes":       {env: []string{"OTEL_RESOURCE_ATTRIBUTES=a=%FF"}, want: "UTF-8"},
		"resource escape":      {env: []string{"OTEL_RESOURCE_ATTRIBUTES=a=b,%zz=c"}, want: "KEY=VALUE"},
		"resource without key": {env: []string{"OTEL_RESOURCE_ATTRIBUTES==b"}, want: "KEY=VALUE"},
		"service name":         {env: []string{"OTEL_SERVICE_NAME=a\xff"}, want: "UTF-8"},
		"timeout":              {env: []string{"OTEL_EXPORTER_OTLP_TIMEOUT=10s"}, want: "milliseconds"},
		"insecure":             {env: []string{"OTEL_EXPORTER_OTLP_INSECURE=yes"}, want: "true or false"},
		"missing certificate":  {env: []string{"OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere/ca.pem"}, want: "/nowhere/ca.pem"},
		"bad certificate":      {env: []string{"OTEL_EXPORTER_OTLP_CERTIFICATE=" + file}, want: "certificates of CAs"},
		"key alone":            {env: []string{"OTEL_EXPORTER_OTLP_CLIENT_KEY=" + file}, want: "set both or neither"},
		"certificate alone":    {env: []string{"OTEL_EXPORTER_OTLP_LOGS_CLIENT_CERTIFICATE=" + file}, want: "set both or neither"},
		"bad pair": {
			env:  []string{"OTEL_EXPORTER_OTLP_CLIENT_KEY=" + file, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" + file},
			want: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
		},
		"sampler":           {env: []string{"OTEL_TRACES_SAMPLER=parentbased_jaeger"}, want: "want always_on"},
		"sampler argument":  {env: []string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=2"}, want: "from 0 to 1"},
		"ratio flag":        {flags: telemetry.Flags{Ratio: &ratio}, want: "--trace-ratio"},
		"exporter":          {env: []string{"OTEL_TRACES_EXPORTER=otpl"}, want: "otlp, console or none"},
		"none and others":   {env: []string{"OTEL_LOGS_EXPORTER=none,otlp"}, want: "OTEL_LOGS_EXPORTER"},
		"the same twice":    {env: []string{"OTEL_LOGS_EXPORTER=otlp,otlp"}, want: "OTEL_LOGS_EXPORTER"},
		"another signal's":  {env: []string{"OTEL_LOGS_EXPORTER=prometheus"}, want: "otlp, console or none"},
		"propagator":        {env: []string{"OTEL_PROPAGATORS=tracecontext,zipkin"}, want: "b3multi"},
		"no propagator":     {env: []string{"OTEL_PROPAGATORS=none,b3"}, want: "none"},
		"batch":             {env: []string{"OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=11"}, want: "at most OTEL_BSP_MAX_QUEUE_SIZE"},
		"number":            {env: []string{"OTEL_BLRP_SCHEDULE_DELAY=soon"}, want: "an integer from 0 to 2147483647"},
		"limit":             {env: []string{"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=-1"}, want: "an integer from 0 to 2147483647"},
		"interval":          {env: []string{"OTEL_METRIC_EXPORT_INTERVAL=0"}, want: "an integer from 1 to 2147483647"},
		"temporality":       {env: []string{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=deltas"}, want: "want cumulative"},
		"disabled":          {env: []string{"OTEL_SDK_DISABLED=1"}, want: "true or false"},
		"resource":          {env: []string{"OTEL_RESOURCE_ATTRIBUTES=a=b,c"}, want: "KEY=VALUE"},
		"content":           {env: []string{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=events"}, want: "span_only"},
		"grpc without host": {env: []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"}, want: "must be a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := telemetry.Read(tc.flags, append([]string{endpoint}, tc.env...))
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), secret)
			require.Len(t, strings.Split(err.Error(), "\n"), 1, "each once: %v", err)
		})
	}
	_, err := telemetry.Read(telemetry.Flags{}, []string{endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=x", "OTEL_PROPAGATORS=y"})
	require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_TIMEOUT")
	require.ErrorContains(t, err, "OTEL_PROPAGATORS", "all of them")
}

func TestRead_TakesValidSettings(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{
		nil,
		{"OTEL_EXPORTER_OTLP_ENDPOINT="},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://h/path", "OTEL_EXPORTER_OTLP_COMPRESSION=none", "OTEL_EXPORTER_OTLP_HEADERS=a=b, c=d%2Ce,"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=h:4317", "OTEL_EXPORTER_OTLP_INSECURE=TRUE"},
		{"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.25"},
		{"OTEL_TRACES_SAMPLER=always_on", "OTEL_TRACES_SAMPLER_ARG=ignored"},
		{"OTEL_TRACES_EXPORTER=otlp,console", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=console"},
		{"OTEL_PROPAGATORS=tracecontext,baggage,b3,b3multi,jaeger,xray,ottrace"},
		{"OTEL_PROPAGATORS=none", "OTEL_RESOURCE_ATTRIBUTES=a=b,c=d%20e", "OTEL_SERVICE_NAME=s"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT=0", "OTEL_BSP_EXPORT_TIMEOUT=0", "OTEL_BLRP_EXPORT_TIMEOUT=0", "OTEL_METRIC_EXPORT_TIMEOUT=0"},
		{endpoint, "OTEL_RESOURCE_ATTRIBUTES= a=b , ,c=,d=e=f,", "OTEL_BSP_SCHEDULE_DELAY= 100 "},
		{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4317", "OTEL_EXPORTER_OTLP_HEADERS=X-Api_Key.2=~ %7e"},
		{"OTEL_ATTRIBUTE_COUNT_LIMIT=0", "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT=7", "OTEL_SOMETHING_ELSE=1"},
	} {
		_, err := telemetry.Read(telemetry.Flags{}, env)
		require.NoError(t, err, "%v", env)
	}
}

func TestRead_WarnsOfProbableMistakes(t *testing.T) {
	t.Parallel()
	for want, env := range map[string][]string{
		"did you mean OTEL_EXPORTER_OTLP_ENDPOINT":     {"OTEL_EXPORTER_OTLP_ENDPIONT=http://h"},
		"did you mean OTEL_SERVICE_NAME":               {"OTEL_SERVICENAME=x"},
		"set --otlp-protocol grpc":                     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4317"},
		"set --otlp-protocol http/protobuf":            {"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"port 4318 is the usual one of OTLP over HTTP": {"OTEL_EXPORTER_OTLP_ENDPOINT=dns:4318", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, // a host of that name
		"OTEL_EXPORTER_OTLP_ENDPOINT: the paths of the signals, such as /v1/traces, are appended":   {"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318/v1/logs/"},
		"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: the endpoint of a signal is used as it is; add /v1/logs": {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://h:4318/"},
		"OTEL_LOG_LEVEL has no effect; use --log-level":                                             {endpoint, "OTEL_LOG_LEVEL=debug"},
		"OTEL_EXPORTER_PROMETHEUS_PORT has no effect; use --metrics-addr":                           {"OTEL_EXPORTER_PROMETHEUS_PORT=9464"},
	} {
		s, err := telemetry.Read(telemetry.Flags{}, env)
		require.NoError(t, err)
		require.Len(t, s.Warnings, 1, "%v", s.Warnings)
		require.Contains(t, s.Warnings[0], want)
	}
	s, err := telemetry.Read(telemetry.Flags{Endpoint: "http://h:4318"}, []string{"OTEL_SDK_DISABLED=true"})
	require.NoError(t, err)
	require.Contains(t, s.Warnings, "OTEL_SDK_DISABLED=true disables the export to --otlp-endpoint")
	for _, other := range []string{"OTEL_NODE_IP=1", "OTEL_GO_X_SELF_OBSERVABILITY=true", "OTEL_POD_IP=2"} {
		s, err := telemetry.Read(telemetry.Flags{}, []string{other})
		require.NoError(t, err)
		require.Empty(t, s.Warnings, "variables of others")
	}
}

func TestRead_CountsHeadersAsSecrets(t *testing.T) {
	t.Parallel()
	s, err := telemetry.Read(telemetry.Flags{}, []string{"OTEL_EXPORTER_OTLP_HEADERS=api-key=" + secret + ",Authorization=Bearer%20" + secret + "-2"})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{secret, "Bearer " + secret + "-2", secret + "-2"}, s.Secrets)
}

func TestRead_StartsWhenDisabledWhateverTheOtherVariablesAre(t *testing.T) {
	t.Parallel()
	env := []string{
		"OTEL_SDK_DISABLED=True",
		"OTEL_TRACES_EXPORTER=otpl", "OTEL_METRICS_EXPORTER=prometheus", "OTEL_LOGS_EXPORTER=none,otlp",
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://h:4317",
		"OTEL_EXPORTER_OTLP_PROTOCOL=thrift", "OTEL_EXPORTER_OTLP_TIMEOUT=10s", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd",
		"OTEL_EXPORTER_OTLP_INSECURE=yes", "OTEL_EXPORTER_OTLP_HEADERS=" + secret, "OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere/ca.pem",
		"OTEL_TRACES_SAMPLER=sometimes", "OTEL_BSP_MAX_QUEUE_SIZE=x", "OTEL_ATTRIBUTE_COUNT_LIMIT=x", "OTEL_METRIC_EXPORT_INTERVAL=x",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=x", "OTEL_RESOURCE_ATTRIBUTES=x", "OTEL_CONFIG_FILE=x",
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=x",
	}
	s, err := telemetry.Read(telemetry.Flags{}, env)
	require.NoError(t, err)
	require.Empty(t, s.Warnings, "they have no effect")
	require.Contains(t, s.Secrets, secret, "redacted nevertheless")

	s, err = telemetry.Read(telemetry.Flags{}, append(env, "OTEL_PROPAGATORS=zipkin"))
	require.NoError(t, err)
	require.Len(t, s.Warnings, 1, "propagators apply to a disabled SDK: %v", s.Warnings)
	require.Contains(t, s.Warnings[0], "used instead: tracecontext")
	require.Nil(t, s.Propagator)

	s, err = telemetry.Read(telemetry.Flags{}, append(env, "OTEL_PROPAGATORS=b3"))
	require.NoError(t, err)
	require.NotNil(t, s.Propagator)

	_, err = telemetry.Read(telemetry.Flags{Protocol: "thrift"}, env)
	require.ErrorContains(t, err, "--otlp-protocol", "flags are not variables")
}

func TestRead_WarnsOfValuesThatOnlyTheSpecificationHas(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"OTEL_TRACES_SAMPLER=jaeger_remote":                           "parentbased_traceidratio with 0.1",
		"OTEL_TRACES_SAMPLER=parentbased_jaeger_remote":               "parentbased_traceidratio with 0.1",
		"OTEL_TRACES_SAMPLER=xray":                                    "parentbased_traceidratio with 0.1",
		"OTEL_TRACES_EXPORTER=zipkin":                                 "none",
		"OTEL_TRACES_EXPORTER=jaeger":                                 "none",
		"OTEL_TRACES_EXPORTER=otlp,zipkin":                            "otlp",
		"OTEL_LOGS_EXPORTER=otlp/stdout":                              "none",
		"OTEL_METRICS_EXPORTER=prometheus":                            "none; metrics for Prometheus are at --metrics-addr",
		"OTEL_METRICS_EXPORTER=Prometheus, otlp":                      "otlp; metrics for Prometheus are at --metrics-addr",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=Delta":     "cumulative",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=lowmemory": "cumulative",

		"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION=base2_exponential_bucket_histogram": "explicit_bucket_histogram",
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=EVENT_ONLY":                               "no_content",
		"OTEL_CONFIG_FILE=otel.yaml":              "variables and flags",
		"OTEL_EXPERIMENTAL_CONFIG_FILE=otel.yaml": "variables and flags",
	} {
		s, err := telemetry.Read(telemetry.Flags{DefaultRatio: 0.1}, []string{endpoint, variable})
		require.NoError(t, err, variable)
		require.Len(t, s.Warnings, 1, "%s: %v", variable, s.Warnings)
		name, _, _ := strings.Cut(variable, "=")
		require.Contains(t, s.Warnings[0], name)
		require.True(t, strings.HasSuffix(s.Warnings[0], "not supported; used instead: "+want), s.Warnings[0])
	}
	half := 0.5
	s, err := telemetry.Read(telemetry.Flags{Ratio: &half}, []string{endpoint, "OTEL_TRACES_SAMPLER=xray"})
	require.NoError(t, err)
	require.Contains(t, s.Warnings[0], "parentbased_traceidratio with 0.5", "the flag wins")
}

func TestRead_WarnsOfInvalidVariablesOfSignalsThatAreNotExported(t *testing.T) {
	t.Parallel()
	const noTraces, noMetrics, noLogs = "OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none"
	off := map[string][]string{
		"OTEL_TRACES_SAMPLER=x":                                        {noTraces},
		"OTEL_BSP_SCHEDULE_DELAY=x":                                    {noTraces},
		"OTEL_BSP_MAX_QUEUE_SIZE=x":                                    {noTraces},
		"OTEL_SPAN_LINK_COUNT_LIMIT=x":                                 {noTraces},
		"OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT=x":                           {noTraces},
		"OTEL_LINK_ATTRIBUTE_COUNT_LIMIT=x":                            {noTraces},
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=x":         {noTraces},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://u:" + secret + "@h": {noTraces},
		"OTEL_METRIC_EXPORT_INTERVAL=x":                                {noMetrics},
		"OTEL_METRICS_EXEMPLAR_FILTER=x":                               {noMetrics},
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=x":          {noMetrics},
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=x":                        {noMetrics},
		"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE=/nowhere/ca.pem":       {noMetrics},
		"OTEL_BLRP_SCHEDULE_DELAY=x":                                   {noLogs},
		"OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT=x":                       {noLogs},
		"OTEL_EXPORTER_OTLP_LOGS_HEADERS=a=%zz" + secret:               {noLogs},
		"OTEL_ATTRIBUTE_COUNT_LIMIT=x":                                 {noTraces, noLogs},
		"OTEL_EXPORTER_OTLP_TIMEOUT=x":                                 {noTraces, noMetrics, noLogs},
		"OTEL_RESOURCE_ATTRIBUTES=x":                                   {noTraces, noMetrics, noLogs},
	}
	for variable, others := range off {
		s, err := telemetry.Read(telemetry.Flags{}, append([]string{endpoint, variable}, others...))
		require.NoError(t, err, variable)
		require.Len(t, s.Warnings, 1, "%s: %v", variable, s.Warnings)
		require.NotContains(t, s.Warnings[0], secret)
		name, _, _ := strings.Cut(variable, "=")
		require.Contains(t, s.Warnings[0], name)
		require.Contains(t, s.Warnings[0], "ignored, as no signal that it applies to is exported")

		_, err = telemetry.Read(telemetry.Flags{}, append([]string{endpoint, variable}, others[1:]...))
		require.ErrorContains(t, err, name, "one of its signals is exported")
	}
	s, err := telemetry.Read(telemetry.Flags{}, []string{"OTEL_EXPORTER_OTLP_TIMEOUT=x"})
	require.NoError(t, err, "nothing is exported")
	require.Len(t, s.Warnings, 1)
	s, err = telemetry.Read(telemetry.Flags{}, []string{endpoint, noLogs, "OTEL_EXPORTER_OTLP_LOGS_HEADERS=a=%zz" + secret})
	require.NoError(t, err)
	require.Contains(t, s.Secrets, "%zz"+secret, "redacted nevertheless")
	_, err = telemetry.Read(telemetry.Flags{}, []string{"OTEL_PROPAGATORS=x"})
	require.ErrorContains(t, err, "OTEL_PROPAGATORS", "applies without any export")
}
