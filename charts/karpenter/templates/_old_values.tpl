{{/* Values of earlier charts. */}}

{{/*
Ends the rendering when a value stands where an earlier chart looked for it and would be lost. A value that also stands in
the new place is lost by nobody, so files that serve two releases are accepted.
*/}}
{{- define "karpenter.refuseOldValues" -}}
{{- $moved := list -}}
{{- range $path := list
  (list "clusterName" "settings.clusterName")
  (list "clusterEndpoint" "settings.clusterEndpoint")
  (list "controller.clusterName" "settings.clusterName")
  (list "controller.clusterEndpoint" "settings.clusterEndpoint")
  (list "controller.replicas" "replicas")
  (list "controller.nodeSelector" "nodeSelector")
  (list "controller.tolerations" "tolerations")
  (list "controller.affinity" "affinity")
  (list "controller.logLevel" "logLevel")
  (list "controller.outputPaths" "logOutputPaths")
  (list "controller.errorOutputPaths" "logErrorOutputPaths")
  (list "controller.batchMaxDuration" "settings.batchMaxDuration")
  (list "controller.batchIdleDuration" "settings.batchIdleDuration")
  (list "settings.aws.clusterName" "settings.clusterName")
  (list "settings.aws.clusterEndpoint" "settings.clusterEndpoint")
  (list "settings.aws.clusterCABundle" "settings.clusterCABundle")
  (list "settings.aws.isolatedVPC" "settings.isolatedVPC")
  (list "settings.aws.vmMemoryOverheadPercent" "settings.vmMemoryOverheadPercent")
  (list "settings.aws.interruptionQueueName" "settings.interruptionQueue")
  (list "settings.aws.interruptionQueue" "settings.interruptionQueue")
  (list "settings.aws.reservedENIs" "settings.reservedENIs") -}}
{{- $old := include "karpenter.valueAt" (dict "root" $ "path" (first $path)) -}}
{{- $new := include "karpenter.valueAt" (dict "root" $ "path" (last $path)) -}}
{{- if and $old (ne $old $new) -}}
{{- $moved = append $moved (printf "%s is now %s" (first $path) (last $path)) -}}
{{- end -}}
{{- end -}}
{{- if kindIs "string" (.Values.controller).image -}}
{{- $moved = append $moved "controller.image is now controller.image.repository, controller.image.tag and controller.image.digest" -}}
{{- end -}}
{{- with $moved -}}
{{- fail (printf "\n\nvalues of an earlier chart, which this one would not see:\n  %s\n" (join "\n  " .)) -}}
{{- end -}}
{{- end -}}

{{/* What stands at a dotted path, as text that can be compared; nothing where the path leads nowhere. */}}
{{- define "karpenter.valueAt" -}}
{{- $at := .root.Values -}}
{{- range splitList "." .path -}}
{{- $at = kindIs "map" $at | ternary (get (kindIs "map" $at | ternary $at (dict)) .) "" -}}
{{- end -}}
{{- if or (kindIs "map" $at) (kindIs "slice" $at) -}}
{{- if $at }}{{ toJson $at }}{{ end -}}
{{- else if not (kindIs "invalid" $at) -}}
{{- toString $at -}}
{{- end -}}
{{- end -}}

{{/* Values that no longer mean anything: each that is set, with what serves its purpose today. */}}
{{- define "karpenter.ignoredValues" -}}
{{- range $gone := list
  (list "webhook" "webhooks are off unless legacy.webhooks.enabled")
  (list "defaultProvisioner" "create a NodePool")
  (list "logConfig" "use logLevel, logOutputPaths and logErrorOutputPaths")
  (list "controller.logEncoding" "log lines are always JSON")
  (list "aws.defaultInstanceProfile" "use spec.instanceProfile or spec.role of the EC2NodeClass")
  (list "settings.assumeRoleARN" "let the AWS configuration of the pod assume the role")
  (list "settings.aws.assumeRoleARN" "let the AWS configuration of the pod assume the role")
  (list "settings.aws.defaultInstanceProfile" "use spec.instanceProfile or spec.role of the EC2NodeClass")
  (list "settings.aws.enablePodENI" "pod interfaces are found out from the node")
  (list "settings.aws.enableENILimitedPodDensity" "use spec.kubelet.maxPods of the EC2NodeClass")
  (list "settings.aws.nodeNameConvention" "nodes are found by their provider id")
  (list "settings.aws.tags" "use spec.tags of the EC2NodeClass")
  (list "settings.featureGates.drift" "drift is always on")
  (list "settings.featureGates.driftEnabled" "drift is always on") -}}
{{- if include "karpenter.valueAt" (dict "root" $ "path" (first $gone)) }}
  {{ first $gone }}: {{ last $gone }}
{{- end -}}
{{- end -}}
{{- end -}}
