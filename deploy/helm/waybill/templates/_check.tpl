{{/* Checks across values that the schema cannot express. */}}
{{- define "waybill.check" -}}
{{- $v := .Values -}}
{{- $problems := list -}}
{{- $on := dict -}}
{{- $ours := list "config" "ready-file" "grpc-addr" "http-addr" "metrics-addr" "assets-addr" "data-dir" "postgres-url-file" "postgres-schema" "postgres-connections" "cold-postgres-url-file" "cold-postgres-schema" "cold-postgres-connections" "cold-bucket" "hot-window" "nats" "nats-creds" "nats-nkey" "nats-ca" "nats-cert" "nats-key" "nats-monitor" "log-replicas" "log-in-sync"
  "tls-cert" "tls-key" "tls-client-ca" "token-file" "insecure" "host-key-file" "asset-key-file" "audit" "audit-key-file"
  "peer-ca" "peer-cert" "peer-key" "peer-token-file" "peer-plaintext" "redactor-ca" "redactor-cert" "redactor-key" "redactor-token-file" "redactor-plaintext"
  "redactor" "acceptor" "eventlog" "dispatcher" -}}
{{- $known := .Files.Get "files/flags.yaml" | fromYaml -}}
{{- $forms := dict "bool" "^(true|false)$" "int" "^-?[0-9]+$" "int64" "^-?[0-9]+$" "float64" "^-?[0-9.]+$" "duration" "^(0|([0-9.]+(ms|s|m|h))+)$" -}}
{{- $given := dict -}}
{{- $mounted := dict -}}
{{- range $name := splitList " " (include "waybill.services" .) -}}
{{- $s := include "waybill.values" (dict "root" $ "name" $name) | fromYaml -}}
{{- if $s.enabled -}}
{{- $_ := set $on $name true -}}
{{- $a := $s.autoscaling -}}
{{- if lt (sub $s.terminationGracePeriodSeconds $s.preStopSeconds | int) 30 -}}
{{- $problems = append $problems (printf "%s.terminationGracePeriodSeconds: must be at least %v: a service may take 30 seconds to stop after preStopSeconds" $name (add 30 $s.preStopSeconds)) -}}
{{- end -}}
{{- if and (ne $a.mode "none") (gt (int $a.minReplicas) (int $a.maxReplicas)) -}}
{{- $problems = append $problems (printf "%s.autoscaling: minReplicas %v is more than maxReplicas %v" $name $a.minReplicas $a.maxReplicas) -}}
{{- end -}}
{{- if and (eq $a.mode "keda") (ne $name "dispatcher") -}}
{{- $problems = append $problems (printf "%s.autoscaling.mode: keda scales the dispatcher only, by the lag of its queue; take hpa or none" $name) -}}
{{- end -}}
{{- if and (eq $name "dispatcher") (eq $a.mode "keda") (not $v.dispatcher.keda.natsMonitoringEndpoint) -}}
{{- $problems = append $problems "dispatcher.keda.natsMonitoringEndpoint: must be set for mode keda, such as nats-headless.nats.svc.cluster.local:8222" -}}
{{- end -}}
{{- if and (eq $name "redactor") (ne $a.mode "none") -}}
{{- $problems = append $problems "redactor.autoscaling.mode: must be none: a change of the number of redactors moves tenants to a redactor without their secrets; set redactor.replicas" -}}
{{- end -}}
{{- range $kind := list "requests" "limits" -}}
{{- range $what := list "cpu" "memory" -}}
{{- if not (dig $kind $what "" $s.resources) -}}
{{- $problems = append $problems (printf "%s.resources.%s.%s: must be set" $name $kind $what) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if ne $name "eventlog" -}}
{{- range $s.secretEnv -}}
{{- $from := printf "%s/%s" .secretName .secretKey -}}
{{- if ne (get $given .name | default $from) $from -}}
{{- $problems = append $problems (printf "%s.secretEnv: %s is another one's elsewhere, and the redactor has to know both; give one of them another name" $name .name) -}}
{{- end -}}
{{- $_ := set $given .name $from -}}
{{- end -}}
{{- end -}}
{{- range $s.secretVolumes -}}
{{- $from := printf "%s at %s" .secret .mountPath -}}
{{- if ne (get $mounted .name | default $from) $from -}}
{{- $problems = append $problems (printf "%s.secretVolumes: %s is another one elsewhere, and the redactor is given both; give one of them another name" $name .name) -}}
{{- end -}}
{{- $_ := set $mounted .name $from -}}
{{- end -}}
{{- $problems = concat $problems (include "waybill.check.pod" (dict "root" $ "name" $name "values" $s "ours" $ours) | fromJsonArray) -}}
{{- $flags := index $known $name -}}
{{- range $key, $value := $s.config -}}
{{- if has $key $ours -}}
{{- $problems = append $problems (printf "%s.config.%s: is set by the chart itself; use the value for it" $name $key) -}}
{{- else if eq $key "api-key" -}}
{{- $problems = append $problems (printf "%s.config.api-key: is secret, and a ConfigMap is not; put it into the Secret of gateway.apiKeys" $name) -}}
{{- else if has $key (list "asset-keys" "interrupt-keys") -}}
{{- $problems = append $problems (printf "%s.config.%s: is secret, and a ConfigMap is not; give WAYBILL_%s by %s.secretEnv" $name $key ($key | upper | replace "-" "_") $name) -}}
{{- else if not (hasKey $flags $key) -}}
{{- $problems = append $problems (printf "%s.config.%s: is no flag of waybill serve %s" $name $key $name) -}}
{{- else if not (regexMatch (get $forms (get $flags $key) | default "") (include "waybill.plain" $value)) -}}
{{- $problems = append $problems (printf "%s.config.%s: %s is no %s" $name $key (include "waybill.plain" $value) (get $flags $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $needs := dict "gateway" (list "dispatcher" "eventlog" "acceptor" "redactor") "dispatcher" (list "acceptor" "eventlog" "redactor") "acceptor" (list "redactor") -}}
{{- range $name, $peers := $needs -}}
{{- range $peer := $peers -}}
{{- if and (hasKey $on $name) (not (hasKey $on $peer)) -}}
{{- $problems = append $problems (printf "%s.enabled: %s calls it; enable it, or set %s.enabled to false" $peer $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $v.image.tag "latest" -}}
{{- $problems = append $problems "image.tag: latest is another image tomorrow; give a version, or image.digest" -}}
{{- end -}}
{{- if and $v.acceptor.assets.serve (not $v.publicUrl) -}}
{{- $problems = append $problems "acceptor.assets.serve: needs publicUrl, with which the URLs of assets begin" -}}
{{- end -}}
{{- if and $v.publicUrl $v.gateway.basePath (not (hasSuffix $v.gateway.basePath (trimSuffix "/" $v.publicUrl))) -}}
{{- $problems = append $problems (printf "publicUrl: must end with gateway.basePath %s, below which the host is" $v.gateway.basePath) -}}
{{- end -}}
{{- if and $v.gateway.ingress.enabled (not $v.gateway.ingress.host) -}}
{{- $problems = append $problems "gateway.ingress.host: must be set when the ingress is enabled" -}}
{{- end -}}
{{- if and $v.nats.credsKey $v.nats.nkeyKey -}}
{{- $problems = append $problems "nats.credsKey, nats.nkeyKey: both identify the client; set only one of them" -}}
{{- end -}}
{{- if ne (empty $v.nats.certKey) (empty $v.nats.certKeyKey) -}}
{{- $problems = append $problems "nats.certKey, nats.certKeyKey: belong together; give both or neither" -}}
{{- end -}}
{{- if gt (int $v.nats.logInSync) (int $v.nats.logReplicas) -}}
{{- $problems = append $problems (printf "nats.logInSync: %v is more than logReplicas %v" $v.nats.logInSync $v.nats.logReplicas) -}}
{{- end -}}
{{- range $i, $url := $v.nats.monitor -}}
{{- if contains "@" $url -}}
{{- $problems = append $problems (printf "nats.monitor[%d]: must not contain a user or password" $i) -}}
{{- end -}}
{{- end -}}
{{- if contains "@" $v.nats.url -}}
{{- $problems = append $problems "nats.url: holds a user or password; put it into the Secret of nats.existingSecret" -}}
{{- end -}}
{{- if not $on -}}
{{- $problems = append $problems "every service is disabled" -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n\nvalues that cannot be used:\n  - %s\n" (join "\n  - " $problems)) -}}
{{- end -}}
{{- end }}
