{{/*
What would be twice in the pods of a service: ports, volumes, places where they are mounted,
variables, labels. Takes root, name, values, and the flags that the chart sets; gives a list of problems.
*/}}
{{- define "waybill.check.pod" -}}
{{- $v := .root.Values -}}
{{- $s := .values -}}
{{- $name := .name -}}
{{- $problems := list -}}
{{- $ports := dict (toString $v.metrics.port) "metrics.port" -}}
{{- $listens := dict -}}
{{- range $port, $number := (index $v $name).ports -}}
{{- $_ := set $listens (printf "%s.ports.%s" $name $port) $number -}}
{{- end -}}
{{- if and (eq $name "acceptor") $v.acceptor.assets.serve -}}
{{- $_ := set $listens "acceptor.assets.port" $v.acceptor.assets.port -}}
{{- end -}}
{{- range $value, $number := $listens -}}
{{- with get $ports (toString $number) -}}
{{- $problems = append $problems (printf "%s, %s: %v cannot be the port of both" $value . $number) -}}
{{- end -}}
{{- $_ := set $ports (toString $number) $value -}}
{{- end -}}
{{- $volumes := dict -}}
{{- $places := dict "/etc/waybill/config" "config" -}}
{{- if eq $name "eventlog" -}}{{- $_ := set $places "/data" "data" -}}{{- end -}}
{{- range (include "waybill.secretFiles" . | fromYaml).files -}}
{{- $_ := set $places (printf "/etc/waybill/%s" .mount) .mount -}}
{{- end -}}
{{- range $kind := list "secretVolumes" "configMapVolumes" -}}
{{- $all := include (printf "waybill.%s" $kind) $ | fromYamlArray -}}
{{- range $all -}}
{{- if has .name (list "config" "data" "tls" "token" "nats" "postgres" "cold" "host" "audit" "secrets") -}}
{{- $problems = append $problems (printf "%s.%s: %s is the name of a volume of the chart's own; give another" $name $kind .name) -}}
{{- else if hasKey $volumes .name -}}
{{- $problems = append $problems (printf "%s.%s: %s is the name of another volume of its pods; give another" $name $kind .name) -}}
{{- end -}}
{{- $_ := set $volumes .name true -}}
{{- $at := clean .mountPath -}}
{{- if hasKey $places $at -}}
{{- $problems = append $problems (printf "%s.%s: %s is mounted at %s, where %s is; give another mountPath" $name $kind .name $at (get $places $at)) -}}
{{- end -}}
{{- $_ := set $places $at .name -}}
{{- end -}}
{{- end -}}
{{- $given := dict -}}
{{- range $kind := list "secretEnv" "extraEnv" -}}
{{- range index $s $kind -}}
{{- $flag := ternary (.name | trimPrefix "WAYBILL_" | lower | replace "_" "-") "" (hasPrefix "WAYBILL_" .name) -}}
{{- if or (has .name (list "MEMORY_LIMIT_MIB" "GOMEMLIMIT" "GOMAXPROCS")) (has $flag $.ours) (and (eq $flag "api-key") $v.gateway.enabled) -}}
{{- $problems = append $problems (printf "%s.%s: %s is set by the chart itself; use the value for it" $name $kind .name) -}}
{{- else if hasKey $given .name -}}
{{- $problems = append $problems (printf "%s.%s: %s is another variable of its pods; give one of them" $name $kind .name) -}}
{{- end -}}
{{- $_ := set $given .name true -}}
{{- end -}}
{{- end -}}
{{- range $label, $_ := include "waybill.selector" . | fromYaml -}}
{{- if hasKey $s.podLabels $label -}}
{{- $problems = append $problems (printf "%s.podLabels.%s: is what its pods are found by; give another label" $name $label) -}}
{{- end -}}
{{- end -}}
{{- if hasKey $s.podAnnotations "checksum/config" -}}
{{- $problems = append $problems (printf "%s.podAnnotations.checksum/config: is set by the chart itself" $name) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end }}
