{{- define "waybill.services" -}}
gateway acceptor dispatcher eventlog redactor
{{- end }}

{{- define "waybill.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- end }}

{{/* The name of a service's objects. Takes root and name. */}}
{{- define "waybill.name" -}}
{{- printf "%s-%s" (include "waybill.fullname" .root) .name -}}
{{- end }}

{{/* What a service is reached at: also the name in its certificate. */}}
{{- define "waybill.host" -}}
{{- printf "%s.%s.svc" (include "waybill.name" .) .root.Release.Namespace -}}
{{- end }}

{{- define "waybill.tlsSecret" -}}
{{- default (printf "%s-tls" (include "waybill.name" .)) (index .root.Values .name).tlsSecret -}}
{{- end }}

{{/* The values of a service: its own over the common ones. */}}
{{- define "waybill.values" -}}
{{- toYaml (mergeOverwrite (deepCopy .root.Values.common) (deepCopy (index .root.Values .name))) -}}
{{- end }}

{{- define "waybill.selector" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{/* Labels of objects that belong to no one service. */}}
{{- define "waybill.commonLabels" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "waybill.labels" -}}
{{ include "waybill.commonLabels" .root }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "waybill.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}
