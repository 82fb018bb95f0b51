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

{{/*
The ports of URLs, as a list: the one that is given, or those in the URLs, or what their
schemes stand for. Takes given, urls, and ports by scheme.
*/}}
{{- define "waybill.portsOf" -}}
{{- $all := list -}}
{{- if .given -}}
{{- $all = append $all (int .given) -}}
{{- else -}}
{{- range .urls -}}
{{- $scheme := regexFind "^[a-z]+://" (trim .) | trimSuffix "://" -}}
{{- $host := regexReplaceAll "^([a-z]+://)?([^/@]*@)?" (trim .) "" | regexFind "^[^/?#]*" -}}
{{- $port := regexFind ":[0-9]+$" $host | trimPrefix ":" -}}
{{- $all = append $all (int (default (get $.ports $scheme | default (get $.ports "other")) $port)) -}}
{{- end -}}
{{- end -}}
{{- toJson (uniq $all) -}}
{{- end }}
