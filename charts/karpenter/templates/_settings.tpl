{{/* From values to the environment that the program reads its settings from. */}}

{{/*
One setting as text: takes a dict of root and key. Every setting is a template, so `{{ .Release.Name }}` works in values.
False and zero are values like any other; only what is null or empty is left to the program's own default.
*/}}
{{- define "karpenter.setting" -}}
{{- $value := get (default (dict) .root.Values.settings) .key -}}
{{- if not (kindIs "invalid" $value) -}}
{{- tpl (toString $value) .root -}}
{{- end -}}
{{- end -}}

{{/*
A list of gates as the program reads it: takes the values, the names in their order, and where there are any the names of
gates that are on besides.
*/}}
{{- define "karpenter.gates" -}}
{{- $gates := list -}}
{{- range .names -}}
{{- $state := get (default (dict) $.values) (untitle .) -}}
{{- if ne (toString $state) "" -}}
{{- $gates = append $gates (printf "%s=%v" . $state) -}}
{{- end -}}
{{- end -}}
{{- range .on -}}
{{- $gates = append $gates (printf "%s=true" .) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{/* The gates of the time of Provisioners, which are named only where they are on. */}}
{{- define "karpenter.legacyGates" -}}
{{- $on := list -}}
{{- range list "NodePreRegistration" "ProactiveBinding" -}}
{{- if eq (toString (get (default (dict) $.Values.legacy) (untitle .))) "true" -}}
{{- $on = append $on . -}}
{{- end -}}
{{- end -}}
{{- toJson $on -}}
{{- end -}}

{{/*
All variables. What controller.env says itself is left to it: a list with one name twice cannot be applied by the server.
*/}}
{{- define "karpenter.environment" -}}
{{- $own := default (list) (.Values.controller).env -}}
{{- $taken := list -}}
{{- range $own -}}
{{- $taken = append $taken .name -}}
{{- end -}}
{{- range include "karpenter.variables" . | fromYamlArray -}}
{{- if not (has .name $taken) }}
- name: {{ .name }}
{{- if hasKey . "value" }}
  value: {{ .value | quote }}
{{- else }}
  {{- omit . "name" | toYaml | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}
{{- with $own }}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{/* What values say, as variables. */}}
{{- define "karpenter.variables" -}}
- name: KUBERNETES_MIN_VERSION
  value: "1.19.0-0"
- name: KARPENTER_SERVICE
  value: {{ include "karpenter.fullname" . | quote }}
{{- with .Values.logLevel }}
- name: LOG_LEVEL
  value: {{ . | quote }}
{{- end }}
{{- with .Values.logOutputPaths }}
- name: LOG_OUTPUT_PATHS
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.logErrorOutputPaths }}
- name: LOG_ERROR_OUTPUT_PATHS
  value: {{ join "," . | quote }}
{{- end }}
- name: METRICS_PORT
  value: {{ include "karpenter.metricsPort" . | quote }}
- name: HEALTH_PROBE_PORT
  value: {{ include "karpenter.healthPort" . | quote }}
- name: SYSTEM_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: CPU_REQUESTS
  valueFrom:
    resourceFieldRef:
      containerName: {{ include "karpenter.containerName" . }}
      divisor: 1m
      resource: requests.cpu
- name: MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ include "karpenter.containerName" . }}
      divisor: "0"
      resource: limits.memory
- name: FEATURE_GATES
  value: {{ include "karpenter.gates" (dict "values" (.Values.settings).featureGates "names" (list
    "ReservedCapacity" "SpotToSpotConsolidation" "NodeRepair" "NodeOverlay" "StaticCapacity" "CapacityBuffer")
    "on" (include "karpenter.legacyGates" . | fromJsonArray)) | quote }}
{{- if eq (toString (.Values.legacy).enabled) "true" }}
- name: LEGACY_APIS
  value: "true"
{{- end }}
{{- with include "karpenter.webhookPort" . }}
- name: LEGACY_WEBHOOKS
  value: "true"
- name: WEBHOOK_PORT
  value: {{ . | quote }}
{{- end }}
- name: AWS_FEATURE_GATES
  value: {{ include "karpenter.gates" (dict "values" (.Values.settings).awsFeatureGates "names" (list "NodeClassCEL")) | quote }}
{{- range $pair := list
  (list "BATCH_MAX_DURATION" "batchMaxDuration")
  (list "BATCH_IDLE_DURATION" "batchIdleDuration")
  (list "PREFERENCE_POLICY" "preferencePolicy")
  (list "MIN_VALUES_POLICY" "minValuesPolicy")
  (list "CLUSTER_CA_BUNDLE" "clusterCABundle")
  (list "CLUSTER_NAME" "clusterName")
  (list "CLUSTER_ENDPOINT" "clusterEndpoint")
  (list "ISOLATED_VPC" "isolatedVPC")
  (list "EKS_CONTROL_PLANE" "eksControlPlane")
  (list "VM_MEMORY_OVERHEAD_PERCENT" "vmMemoryOverheadPercent")
  (list "INTERRUPTION_QUEUE" "interruptionQueue")
  (list "ENABLE_ZONAL_SHIFT" "enableZonalShift")
  (list "RESERVED_ENIS" "reservedENIs")
  (list "IGNORE_DRA_REQUESTS" "ignoreDRARequests")
  (list "DISABLE_CLUSTER_STATE_OBSERVABILITY" "disableClusterStateObservability")
  (list "DISABLE_DRY_RUN" "disableDryRun")
  (list "AMI_REFRESH_INTERVAL" "amiRefreshInterval")
  (list "SUBNET_REFRESH_INTERVAL" "subnetRefreshInterval") }}
{{- $value := include "karpenter.setting" (dict "root" $ "key" (last $pair)) }}
{{- /* False is what all but one are anyway. Unwritten, it leaves the variable to envFrom. */}}
{{- if and $value (or (ne $value "false") (eq (last $pair) "ignoreDRARequests")) }}
- name: {{ first $pair }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}
