{{/*
The settings of each service: names and values of its flags, as its --config file
wants them. What must not be read by everybody is in files of Secrets, or in the
environment (_pod.tpl), and never here.
*/}}

{{- define "waybill.config" -}}
{{- $own := include (printf "waybill.config.%s" .name) . | fromYaml -}}
{{- $common := include "waybill.config.common" . | fromYaml -}}
{{- $values := include "waybill.values" . | fromYaml -}}
{{- toYaml (mergeOverwrite $common $own $values.config) -}}
{{- end }}

{{- define "waybill.config.common" -}}
{{- $v := .root.Values -}}
{{- $ports := (index $v .name).ports -}}
grpc-addr: {{ printf ":%v" $ports.grpc | quote }}
metrics-addr: {{ printf ":%v" $v.metrics.port | quote }}
log-level: {{ $v.logging.level | quote }}
log-format: {{ $v.logging.format | quote }}
{{- if $v.tls.enabled }}
tls-cert: /etc/waybill/tls/tls.crt
tls-key: /etc/waybill/tls/tls.key
{{- end }}
{{- with $v.tracing }}
{{- if .otlpEndpoint }}
otlp-endpoint: {{ .otlpEndpoint | quote }}
otlp-protocol: {{ .protocol | quote }}
trace-ratio: {{ .ratio | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the services have that only the host's own services call. The gateway's callers have API keys. */}}
{{- define "waybill.config.inner" -}}
{{- $v := .root.Values -}}
token-file: /etc/waybill/token/token
{{- if not $v.tls.enabled }}
insecure: "true"
{{- else if $v.tls.mutual }}
tls-client-ca: /etc/waybill/tls/{{ $v.tls.caKey }}
{{- end }}
{{- end }}

{{/* Where other services are, and how they are reached. Takes root, peers, and what the flags begin with. */}}
{{- define "waybill.config.peers" -}}
{{- $v := .root.Values -}}
{{- range .peers }}
{{ . }}: {{ printf "%s:%v" (include "waybill.host" (dict "root" $.root "name" .)) (index $v .).ports.grpc | quote }}
{{- end }}
{{ .flags }}-token-file: /etc/waybill/token/token
{{- if not $v.tls.enabled }}
{{ .flags }}-plaintext: "true"
{{- else }}
{{ .flags }}-ca: /etc/waybill/tls/{{ $v.tls.caKey }}
{{- if $v.tls.mutual }}
{{ .flags }}-cert: /etc/waybill/tls/tls.crt
{{ .flags }}-key: /etc/waybill/tls/tls.key
{{- end }}
{{- end }}
{{- end }}

{{/* NATS; its URL may hold a password and is then in the environment. */}}
{{- define "waybill.config.nats" -}}
{{- with .root.Values.nats -}}
log-replicas: {{ .logReplicas }}
{{- if .logInSync }}
log-in-sync: {{ .logInSync }}
{{- end }}
{{- with .monitor }}
nats-monitor: {{ toJson . }}
{{- end }}
{{- if .url }}
nats: {{ .url | quote }}
{{- end }}
{{- if .credsKey }}
nats-creds: /etc/waybill/nats/{{ .credsKey }}
{{- end }}
{{- if .nkeyKey }}
nats-nkey: /etc/waybill/nats/{{ .nkeyKey }}
{{- end }}
{{- if .caKey }}
nats-ca: /etc/waybill/nats/{{ .caKey }}
{{- end }}
{{- if .certKey }}
nats-cert: /etc/waybill/nats/{{ .certKey }}
nats-key: /etc/waybill/nats/{{ .certKeyKey }}
{{- end }}
{{- end }}
{{- end }}

{{/* The cold store, of the services that read runs. */}}
{{- define "waybill.config.cold" -}}
{{- with .root.Values.coldStore }}
{{- if .existingSecret }}
cold-postgres-url-file: /etc/waybill/cold/{{ .urlKey }}
cold-postgres-schema: {{ .schema | quote }}
cold-postgres-connections: {{ .connections }}
{{- with .bucket }}
cold-bucket: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "waybill.config.gateway" -}}
{{- $v := .root.Values -}}
http-addr: {{ printf ":%v" $v.gateway.ports.http | quote }}
host-key-file: /etc/waybill/host/host.key
{{- if $v.gateway.audit.enabled }}
audit-key-file: /etc/waybill/audit/audit.pem
{{- else }}
audit: "false"
{{- end }}
{{- with $v.gateway.basePath }}
base-path: {{ . | quote }}
{{- end }}
{{- if not $v.gateway.console.enabled }}
console: "false"
{{- end }}
{{- with $v.publicUrl }}
public-url: {{ . | quote }}
{{- end }}
{{ include "waybill.config.nats" . }}
{{- include "waybill.config.cold" . }}
{{- include "waybill.config.peers" (dict "root" .root "flags" "peer" "peers" (list "dispatcher" "eventlog" "acceptor" "redactor")) }}
{{- end }}

{{- define "waybill.config.acceptor" -}}
{{- $v := .root.Values -}}
{{ include "waybill.config.inner" . }}
{{ include "waybill.config.nats" . }}
{{- include "waybill.config.cold" . }}
{{- include "waybill.config.peers" (dict "root" .root "flags" "redactor" "peers" (list "redactor")) }}
{{- with $v.publicUrl }}
public-url: {{ . | quote }}
asset-key-file: /etc/waybill/host/host.key
{{- if $v.acceptor.assets.serve }}
assets-addr: {{ printf ":%v" $v.acceptor.assets.port | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "waybill.config.dispatcher" -}}
{{- $v := .root.Values -}}
{{ include "waybill.config.inner" . }}
{{ include "waybill.config.nats" . }}
host-key-file: /etc/waybill/host/host.key
lease: {{ $v.dispatcher.lease | quote }}
retention: {{ $v.dispatcher.retention | quote }}
drain-timeout: {{ printf "%vs" $v.dispatcher.drainTimeoutSeconds | quote }}
{{- include "waybill.config.cold" . }}
{{- if $v.coldStore.existingSecret }}
hot-window: {{ $v.coldStore.hotWindow | quote }}
{{- end }}
{{- include "waybill.config.peers" (dict "root" .root "flags" "peer" "peers" (list "acceptor" "eventlog" "redactor")) }}
{{- end }}

{{- define "waybill.config.eventlog" -}}
{{ include "waybill.config.inner" . }}
{{ include "waybill.config.nats" . }}
{{- include "waybill.config.cold" . }}
{{- with .root.Values.postgresql }}
{{- if .existingSecret }}
postgres-url-file: /etc/waybill/postgres/{{ .urlKey }}
postgres-schema: {{ .schema | quote }}
postgres-connections: {{ .connections }}
{{- else }}
data-dir: /data
{{- end }}
{{- end }}
{{- end }}

{{/*
What the dispatcher knows of servers, the redactor has to know too: under their
names it finds their keys in the environment. A vendor needs no name for that.
*/}}
{{- define "waybill.config.redactor" -}}
{{- $v := .root.Values -}}
{{ include "waybill.config.inner" . }}
redact-shapes: {{ $v.redactor.shapes | quote }}
{{- if $v.redactor.secrets.existingSecret }}
secrets-file: /etc/waybill/secrets/secrets.yaml
{{- end }}
{{- if $v.dispatcher.enabled }}
{{- $known := (include "waybill.values" (dict "root" .root "name" "dispatcher") | fromYaml).config }}
{{- range $flag := list "provider" "mcp-server" "a2a-agent" }}
{{- $named := list }}
{{- range (kindIs "slice" (index $known $flag) | ternary (index $known $flag) (list (index $known $flag))) }}
{{- if contains "=" (toString .) }}{{ $named = append $named . }}{{ end }}
{{- end }}
{{- with $named }}
{{ $flag }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- with index $known "provider-settings" }}
provider-settings: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* A value as it was written. Numbers in full: 8388608, and not 8.388608e+06. */}}
{{- define "waybill.plain" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{/* The file itself. */}}
{{- define "waybill.configFile" -}}
{{- range $key, $value := include "waybill.config" . | fromYaml }}
{{- if kindIs "slice" $value }}
{{ $key }}: {{ toJson $value }}
{{- else if kindIs "float64" $value }}
{{ $key }}: {{ include "waybill.plain" $value }}
{{- else }}
{{ $key }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether something else than the chart says how many pods there are. */}}
{{- define "waybill.scaled" -}}
{{- if ne .values.autoscaling.mode "none" }}true{{ end -}}
{{- end }}

{{/* The fewest pods that a service has by itself. */}}
{{- define "waybill.fewest" -}}
{{- if include "waybill.scaled" . }}{{ .values.autoscaling.minReplicas }}{{ else }}{{ .values.replicas }}{{ end -}}
{{- end }}
