{{/*
The Secrets that a service reads as files: a list of name, mount, and items. Each
mount is a folder below /etc/waybill.
*/}}
{{- define "waybill.secretFiles" -}}
{{- $v := .root.Values -}}
files:
{{- if $v.tls.enabled }}
  - mount: tls
    secret: {{ include "waybill.tlsSecret" . }}
{{- end }}
  - mount: token
    secret: {{ $v.serviceToken.existingSecret }}
    items: [{key: {{ $v.serviceToken.key | quote }}, path: token}]
{{- if and $v.nats.credsKey (ne .name "redactor") }}
  - mount: nats
    secret: {{ $v.nats.existingSecret }}
    items: [{key: {{ $v.nats.credsKey | quote }}, path: {{ $v.nats.credsKey | quote }}}]
{{- end }}
{{- if or (has .name (list "gateway" "dispatcher")) (and (eq .name "acceptor") $v.publicUrl) }}
  - mount: host
    secret: {{ $v.hostKey.existingSecret }}
    items: [{key: {{ $v.hostKey.key | quote }}, path: host.key}]
{{- end }}
{{- if and (eq .name "redactor") $v.redactor.secrets.existingSecret }}
  - mount: secrets
    secret: {{ $v.redactor.secrets.existingSecret }}
    items: [{key: {{ $v.redactor.secrets.key | quote }}, path: secrets.yaml}]
{{- end }}
{{- end }}

{{/* Environment: what a Secret gives as one value, and what the limits say. */}}
{{- define "waybill.env" -}}
{{- $v := .root.Values -}}
{{- $s := .values -}}
# A MiB of the limit is a million bytes for the runtime: the twentieth part that
# is left is for what Go does not count.
- name: MEMORY_LIMIT_MIB
  valueFrom: {resourceFieldRef: {containerName: {{ .name }}, resource: limits.memory, divisor: 1Mi}}
- name: GOMEMLIMIT
  value: $(MEMORY_LIMIT_MIB)000000
- name: GOMAXPROCS
  valueFrom: {resourceFieldRef: {containerName: {{ .name }}, resource: limits.cpu, divisor: "1"}}
{{- if and (ne .name "redactor") (not $v.nats.url) }}
- name: WAYBILL_NATS
  valueFrom: {secretKeyRef: {name: {{ $v.nats.existingSecret }}, key: {{ $v.nats.urlKey | quote }}}}
{{- end }}
{{- if eq .name "gateway" }}
- name: WAYBILL_API_KEY
  valueFrom: {secretKeyRef: {name: {{ $v.gateway.apiKeys.existingSecret }}, key: {{ $v.gateway.apiKeys.key | quote }}}}
{{- end }}
{{- if eq .name "eventlog" }}
- name: WAYBILL_STORE
  valueFrom: {secretKeyRef: {name: {{ $v.postgresql.existingSecret }}, key: {{ $v.postgresql.urlKey | quote }}}}
{{- end }}
{{- range $s.secretEnv }}
- name: {{ .name }}
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: {{ .secretKey | quote }}}}
{{- end }}
{{- range $s.extraEnv }}
- name: {{ .name }}
  value: {{ .value | quote }}
{{- end }}
{{- end }}

{{- define "waybill.ports" -}}
{{- range $port, $number := (index .root.Values .name).ports }}
- {name: {{ $port }}, containerPort: {{ $number }}}
{{- end }}
{{- if and (eq .name "acceptor") .root.Values.acceptor.assets.serve }}
- {name: assets, containerPort: {{ .root.Values.acceptor.assets.port }}}
{{- end }}
- {name: metrics, containerPort: {{ .root.Values.metrics.port }}}
{{- end }}

{{/* The pod of a service. Takes root, name, and values as of waybill.values. */}}
{{- define "waybill.pod" -}}
{{- $v := .root.Values -}}
{{- $s := .values -}}
{{- $files := (include "waybill.secretFiles" . | fromYaml).files -}}
serviceAccountName: {{ include "waybill.name" . }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $s.terminationGracePeriodSeconds }}
{{- with $v.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with $s.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $s.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $s.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $s.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $s.spreadOver }}
topologySpreadConstraints:
{{- range . }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "waybill.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
containers:
  - name: {{ .name }}
    image: {{ include "waybill.image" .root | quote }}
    imagePullPolicy: {{ $v.image.pullPolicy }}
    args: [serve, {{ .name }}, --config, /etc/waybill/config/config.yaml]
    env:
      {{- include "waybill.env" . | nindent 6 }}
    ports:
      {{- include "waybill.ports" . | trim | nindent 6 }}
    resources:
      {{- toYaml $s.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      runAsNonRoot: true
      runAsUser: 65532
      runAsGroup: 65532
      capabilities: {drop: [ALL]}
      seccompProfile: {type: RuntimeDefault}
    # Two minutes to begin: the log's server may be on its way as well. Liveness
    # asks nobody else, so that a log that is away restarts nothing.
    startupProbe:
      httpGet: {path: /healthz, port: metrics}
      periodSeconds: 2
      failureThreshold: 60
    readinessProbe:
      httpGet: {path: /readyz, port: metrics}
      periodSeconds: 5
      timeoutSeconds: 2
      failureThreshold: 2
    livenessProbe:
      httpGet: {path: /healthz, port: metrics}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    lifecycle:
      preStop:
        sleep: {seconds: {{ $s.preStopSeconds }}}
    volumeMounts:
      - {name: config, mountPath: /etc/waybill/config, readOnly: true}
      {{- range $files }}
      - {name: {{ .mount }}, mountPath: /etc/waybill/{{ .mount }}, readOnly: true}
      {{- end }}
      {{- range $s.configMapVolumes }}
      - {name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: true}
      {{- end }}
volumes:
  - name: config
    configMap: {name: {{ include "waybill.name" . }}}
  {{- range $files }}
  - name: {{ .mount }}
    secret:
      secretName: {{ .secret }}
      # The host refuses a file of secrets that everybody may read.
      defaultMode: 0440
      {{- with .items }}
      items:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- end }}
  {{- range $s.configMapVolumes }}
  - name: {{ .name }}
    configMap: {name: {{ .configMap }}}
  {{- end }}
{{- end }}
