{{/* Names, labels and metadata that all objects share. */}}

{{/* 63 characters are what a label value and a Service name may have. */}}
{{- define "karpenter.short" -}}
{{- . | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "karpenter.name" -}}
{{- include "karpenter.short" (default .Chart.Name .Values.nameOverride) -}}
{{- end -}}

{{/* A release that is called after the chart needs no second word. */}}
{{- define "karpenter.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- include "karpenter.short" (default $full .Values.fullnameOverride) -}}
{{- end -}}

{{- define "karpenter.serviceAccountName" -}}
{{- default (ternary (include "karpenter.fullname" .) "default" (eq (toString (.Values.serviceAccount).create) "true")) (.Values.serviceAccount).name -}}
{{- end -}}

{{/* What selects the pods. Never change these: the selector of a Deployment cannot be updated. */}}
{{- define "karpenter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "karpenter.labels" -}}
helm.sh/chart: {{ include "karpenter.short" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") }}
{{ include "karpenter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
The metadata of an object: takes a dict of root and name, and where the object needs them of namespace, labels and
annotations.
*/}}
{{- define "karpenter.metadata" -}}
name: {{ .name }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "karpenter.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default (dict) .annotations) (default (dict) .root.Values.additionalAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The body of a binding: takes a dict of root, kind and name of the role. */}}
{{- define "karpenter.binding" -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "karpenter.serviceAccountName" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{- define "karpenter.image" -}}
{{- with (.Values.controller).image -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* The port of webhooks, where they are on. */}}
{{- define "karpenter.webhookPort" -}}
{{- with (default (dict) .Values.legacy).webhooks -}}
{{- if eq (toString .enabled) "true" }}{{ default 8443 .port }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Values that are reused from another release may lack any group: what stands in parentheses may be missing. */}}
{{- define "karpenter.metricsPort" -}}
{{- default 8080 ((.Values.controller).metrics).port -}}
{{- end -}}

{{- define "karpenter.healthPort" -}}
{{- default 8081 ((.Values.controller).healthProbe).port -}}
{{- end -}}

{{- define "karpenter.containerName" -}}
{{- default "controller" (.Values.controller).containerName -}}
{{- end -}}

{{/*
Gives a selector of our own pods to every term that has none: takes a dict of root and terms, which it changes in place.
*/}}
{{- define "karpenter.selectOwnPods" -}}
{{- range .terms -}}
{{- if not (hasKey . "labelSelector") -}}
{{- $_ := set . "labelSelector" (dict "matchLabels" (include "karpenter.selectorLabels" $.root | fromYaml)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "karpenter.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- with get $affinity $kind -}}
{{- include "karpenter.selectOwnPods" (dict "root" $ "terms" .requiredDuringSchedulingIgnoredDuringExecution) -}}
{{- range .preferredDuringSchedulingIgnoredDuringExecution -}}
{{- include "karpenter.selectOwnPods" (dict "root" $ "terms" (list .podAffinityTerm)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toYaml $affinity }}
{{- end -}}

{{- define "karpenter.topologySpreadConstraints" -}}
{{- $constraints := deepCopy .Values.topologySpreadConstraints -}}
{{- include "karpenter.selectOwnPods" (dict "root" $ "terms" $constraints) -}}
{{ toYaml $constraints }}
{{- end -}}

{{/* What controller.env says of a variable, where it says it in so many words: takes a dict of root and name. */}}
{{- define "karpenter.variable" -}}
{{- range (.root.Values.controller).env | default list -}}
{{- if eq .name $.name }}{{ .value }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Where the lease is, and with it the rights to it. */}}
{{- define "karpenter.leaseNamespace" -}}
{{- default .Release.Namespace (include "karpenter.variable" (dict "root" $ "name" "LEADER_ELECTION_NAMESPACE")) -}}
{{- end -}}
