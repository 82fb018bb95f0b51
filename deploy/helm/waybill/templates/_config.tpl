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
{{- with $v.tracing }}
{{- if .otlpEndpoint }}
otlp-endpoint: {{ .otlpEndpoint | quote }}
otlp-protocol: {{ .protocol | quote }}
trace-ratio: {{ .ratio | quote }}
{{- end }}
{{- end }}
{{- if $v.tls.enabled }}
tls-cert: /etc/waybill/tls/tls.crt
tls-key: /etc/waybill/tls/tls.key
{{- else }}
insecure: "true"
{{- end }}
{{- end }}

{{/* How services know their callers. The gateway's callers have API keys. */}}
{{- define "waybill.config.token" -}}
token-file: /etc/waybill/token/token
{{- end }}

{{/* How another service is reached. Takes root, and peer. */}}
{{- define "waybill.config.peer" -}}
{{- $v := .root.Values -}}
{{- $peer := dict "root" .root "name" .peer -}}
{{ .peer }}: {{ printf "%s:%v" (include "waybill.host" $peer) (index $v .peer).ports.grpc | quote }}
{{ .peer }}-token-file: /etc/waybill/token/token
{{- if $v.tls.enabled }}
{{ .peer }}-ca: /etc/waybill/tls/{{ $v.tls.caKey }}
{{- else }}
{{ .peer }}-plaintext: "true"
{{- end }}
{{- end }}

{{/* NATS; its URL may hold a password and is then in the environment. */}}
{{- define "waybill.config.nats" -}}
{{- with .root.Values.nats -}}
log-replicas: {{ .logReplicas }}
{{- if .url }}
nats: {{ .url | quote }}
{{- end }}
{{- if .credsKey }}
nats-creds: /etc/waybill/nats/{{ .credsKey }}
{{- end }}
{{- end }}
{{- end }}

{{- define "waybill.config.gateway" -}}
{{- $v := .root.Values -}}
http-addr: {{ printf ":%v" $v.gateway.ports.http | quote }}
data-dir: /etc/waybill/host
{{- with $v.publicUrl }}
public-url: {{ . | quote }}
{{- end }}
{{ include "waybill.config.nats" . }}
{{- range $peer := list "dispatcher" "eventlog" "acceptor" "redactor" }}
{{ include "waybill.config.peer" (dict "root" $.root "peer" $peer) }}
{{- end }}
{{- end }}

{{- define "waybill.config.acceptor" -}}
{{- $v := .root.Values -}}
{{ include "waybill.config.token" . }}
{{ include "waybill.config.nats" . }}
{{ include "waybill.config.peer" (dict "root" .root "peer" "redactor") }}
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
{{ include "waybill.config.token" . }}
{{ include "waybill.config.nats" . }}
data-dir: /etc/waybill/host
lease: {{ $v.dispatcher.lease | quote }}
{{- range $peer := list "acceptor" "eventlog" "redactor" }}
{{ include "waybill.config.peer" (dict "root" $.root "peer" $peer) }}
{{- end }}
{{- end }}

{{- define "waybill.config.eventlog" -}}
{{ include "waybill.config.token" . }}
{{ include "waybill.config.nats" . }}
{{- end }}

{{- define "waybill.config.redactor" -}}
{{- $v := .root.Values -}}
{{ include "waybill.config.token" . }}
redact-shapes: {{ $v.redactor.shapes | quote }}
{{- if $v.redactor.secrets.existingSecret }}
secrets-file: /etc/waybill/secrets/secrets.yaml
{{- end }}
{{- end }}

{{/* The file itself. Numbers in full: 8388608, and not 8.388608e+06. */}}
{{- define "waybill.configFile" -}}
{{- range $key, $value := include "waybill.config" . | fromYaml }}
{{- if kindIs "slice" $value }}
{{ $key }}: {{ toJson $value }}
{{- else if kindIs "float64" $value }}
{{ $key }}: {{ if eq (floor $value) $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
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
