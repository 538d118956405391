{{/* One definition from files/, with the user's annotations added. */}}
{{- define "karpenter-crd.definition" -}}
{{- $definition := .root.Files.Get (printf "files/%s" .file) | fromYaml -}}
{{- with .root.Values.additionalAnnotations -}}
{{- $_ := set $definition.metadata "annotations" (merge (dict) . (default (dict) $definition.metadata.annotations)) -}}
{{- end -}}
{{ toYaml $definition }}
{{- end -}}
