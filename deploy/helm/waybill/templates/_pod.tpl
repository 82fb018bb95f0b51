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
{{- with compact (list $v.nats.credsKey $v.nats.nkeyKey $v.nats.caKey $v.nats.certKey $v.nats.certKeyKey) }}
{{- if ne $.name "redactor" }}
  - mount: nats
    secret: {{ $v.nats.existingSecret }}
    items:
    {{- range uniq . }}
      - {key: {{ . | quote }}, path: {{ . | quote }}}
    {{- end }}
{{- end }}
{{- end }}
{{- if or (has .name (list "gateway" "dispatcher")) (and (eq .name "acceptor") $v.publicUrl) }}
  - mount: host
    secret: {{ $v.hostKey.existingSecret }}
    items: [{key: {{ $v.hostKey.key | quote }}, path: host.key}]
{{- end }}
{{- if and (eq .name "gateway") $v.gateway.audit.enabled }}
  - mount: audit
    secret: {{ $v.gateway.audit.existingSecret }}
    items: [{key: {{ $v.gateway.audit.key | quote }}, path: audit.pem}]
{{- end }}
{{- if and (eq .name "eventlog") $v.postgresql.existingSecret }}
  - mount: postgres
    secret: {{ $v.postgresql.existingSecret }}
    items:
    {{- range compact (list $v.postgresql.urlKey $v.postgresql.caKey) | uniq }}
      - {key: {{ . | quote }}, path: {{ . | quote }}}
    {{- end }}
{{- end }}
{{- if and (ne .name "redactor") $v.coldStore.existingSecret }}
  - mount: cold
    secret: {{ $v.coldStore.existingSecret }}
    items:
    {{- range compact (list $v.coldStore.urlKey $v.coldStore.caKey) | uniq }}
      - {key: {{ . | quote }}, path: {{ . | quote }}}
    {{- end }}
{{- end }}
{{- if and (eq .name "redactor") $v.redactor.secrets.existingSecret }}
  - mount: secrets
    secret: {{ $v.redactor.secrets.existingSecret }}
    items: [{key: {{ $v.redactor.secrets.key | quote }}, path: secrets.yaml}]
{{- end }}
{{- end }}

{{/*
The variables from Secrets that a service is given: those of values, and for the
redactor those of all who have secrets of the host, or it would not know them.
*/}}
{{- define "waybill.secretEnv" -}}
{{- $all := .values.secretEnv -}}
{{- if eq .name "redactor" -}}
{{- range $other := list "gateway" "acceptor" "dispatcher" -}}
{{- $s := include "waybill.values" (dict "root" $.root "name" $other) | fromYaml -}}
{{- if $s.enabled -}}
{{- range $s.secretEnv -}}
{{- $name := .name -}}
{{- $there := false -}}
{{- range $all }}{{ if eq .name $name }}{{ $there = true }}{{ end }}{{ end -}}
{{- if not $there }}{{ $all = append $all . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{/*
The volumes from Secrets of values, and for the redactor those of all who have secrets
of the host; likewise the variables that name files.
*/}}
{{- define "waybill.secretVolumes" -}}
{{- include "waybill.shared" (dict "root" .root "name" .name "what" "secretVolumes" "suffix" "" "own" .values.secretVolumes) -}}
{{- end }}

{{/*
The volumes from ConfigMaps of values, and for the redactor the dispatcher's with its
provider-settings, which name keys.
*/}}
{{- define "waybill.configMapVolumes" -}}
{{- $all := .values.configMapVolumes -}}
{{- $d := include "waybill.values" (dict "root" .root "name" "dispatcher") | fromYaml -}}
{{- $file := index $d.config "provider-settings" | toString -}}
{{- if and (eq .name "redactor") $d.enabled -}}
{{- range $d.configMapVolumes -}}
{{- $name := .name -}}
{{- $there := not (hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) $file) -}}
{{- range $all }}{{ if eq .name $name }}{{ $there = true }}{{ end }}{{ end -}}
{{- if not $there }}{{ $all = append $all . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{- define "waybill.extraEnv" -}}
{{- include "waybill.shared" (dict "root" .root "name" .name "what" "extraEnv" "suffix" "_FILE" "own" .values.extraEnv) -}}
{{- end }}

{{- define "waybill.shared" -}}
{{- $all := .own -}}
{{- if eq .name "redactor" -}}
{{- range $other := list "gateway" "acceptor" "dispatcher" -}}
{{- $s := include "waybill.values" (dict "root" $.root "name" $other) | fromYaml -}}
{{- if $s.enabled -}}
{{- range index $s $.what -}}
{{- $name := .name -}}
{{- $there := not (hasSuffix $.suffix $name) -}}
{{- range $all }}{{ if eq .name $name }}{{ $there = true }}{{ end }}{{ end -}}
{{- if not $there }}{{ $all = append $all . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
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
{{- if or (eq .name "gateway") (and (eq .name "redactor") $v.gateway.enabled) }}
- name: WAYBILL_API_KEY
  valueFrom: {secretKeyRef: {name: {{ $v.gateway.apiKeys.existingSecret }}, key: {{ $v.gateway.apiKeys.key | quote }}}}
{{- end }}
{{- range include "waybill.secretEnv" . | fromYamlArray }}
- name: {{ .name }}
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: {{ .secretKey | quote }}}}
{{- end }}
{{- range include "waybill.extraEnv" . | fromYamlArray }}
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
{{- $secrets := include "waybill.secretVolumes" . | fromYamlArray -}}
{{- $configMaps := include "waybill.configMapVolumes" . | fromYamlArray -}}
{{- $keeps := and (eq .name "eventlog") (not $v.postgresql.existingSecret) }}
{{- /* The gateway answers probes where it serves. */}}
{{- $asks := "{path: %s, port: metrics}" -}}
{{- if eq .name "gateway" }}{{ $asks = printf "{path: %%s, port: http, scheme: %s}" (ternary "HTTPS" "HTTP" $v.tls.enabled) }}{{ end -}}
serviceAccountName: {{ include "waybill.name" . }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ if eq .name "dispatcher" }}{{ add $s.terminationGracePeriodSeconds $v.dispatcher.drainTimeoutSeconds }}{{ else }}{{ $s.terminationGracePeriodSeconds }}{{ end }}
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
    # Two minutes to start, because NATS may be starting as well. Liveness
    # depends on no other service, so an unavailable log restarts no pod.
    startupProbe:
      httpGet: {{ printf $asks "/healthz" }}
      periodSeconds: 2
      failureThreshold: 60
    readinessProbe:
      httpGet: {{ printf $asks "/readyz" }}
      periodSeconds: 5
      timeoutSeconds: 2
      failureThreshold: 2
    livenessProbe:
      httpGet: {{ printf $asks "/healthz" }}
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
      {{- range $secrets }}
      - {name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: true}
      {{- end }}
      {{- range $configMaps }}
      - {name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: true}
      {{- end }}
      {{- if $keeps }}
      - {name: data, mountPath: /data}
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
  {{- range $secrets }}
  - name: {{ .name }}
    secret:
      secretName: {{ .secret }}
      defaultMode: 0440
      {{- with .items }}
      items:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- end }}
  {{- range $configMaps }}
  - name: {{ .name }}
    configMap: {name: {{ .configMap }}}
  {{- end }}
  {{- if $keeps }}
  # What is read of the log, made again from it by each new pod.
  - name: data
    {{- if $s.data.volumeClaim }}
    ephemeral:
      volumeClaimTemplate:
        spec:
          accessModes: [ReadWriteOnce]
          {{- with $s.data.storageClassName }}
          storageClassName: {{ . }}
          {{- end }}
          resources: {requests: {storage: {{ $s.data.size }}}}
    {{- else }}
    emptyDir: {sizeLimit: {{ $s.data.size }}}
    {{- end }}
  {{- end }}
{{- end }}
