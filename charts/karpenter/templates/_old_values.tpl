{{/* Values of earlier charts. */}}

{{/*
Values that stand where an earlier chart looked for them: each with its place of today, as lines. One that also stands in
the new place is lost by nobody and not named, so that files may serve two releases.
*/}}
{{- define "karpenter.movedValues" -}}
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
{{- if and $old (ne $old $new) }}
  {{ first $path }} is now {{ last $path }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Ends the rendering where there is nothing to go by. */}}
{{- define "karpenter.refuseOldValues" -}}
{{- if kindIs "string" (.Values.controller).image -}}
{{- fail "controller.image is now controller.image.repository, controller.image.tag and controller.image.digest" -}}
{{- end -}}
{{- if .Values.extraObjects -}}
{{- fail "extraObjects is set, and this chart passes no objects on.\n\n`karpenter convert` makes documents of them, as they are today: apply those with kubectl, then take extraObjects out of the values.\nThe upgrade deletes the objects of the release before. Those that are to stay need kubectl annotate helm.sh/resource-policy=keep." -}}
{{- end -}}
{{- if not (include "karpenter.setting" (dict "root" $ "key" "clusterName")) -}}
{{- $complaint := "settings.clusterName is empty: it has to name the cluster that the nodes join" -}}
{{- with include "karpenter.movedValues" $ -}}
{{- $complaint = printf "%s\n\nvalues of an earlier chart, which have no effect where they stand:%s\n" $complaint . -}}
{{- end -}}
{{- fail $complaint -}}
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

{{/*
Values that no longer mean anything: each that is set, with what serves its purpose today. What its chart had by itself,
and what holds anyway, is not named.
*/}}
{{- define "karpenter.ignoredValues" -}}
{{- range $gone := list
  (list "webhook" "webhooks are off unless legacy.webhooks.enabled")
  (list "defaultProvisioner" "create a NodePool, or set legacy.defaultProvisioner")
  (list "logConfig" "use logLevel, logOutputPaths and logErrorOutputPaths")
  (list "logEncoding" "log lines are always JSON" "json")
  (list "controller.logEncoding" "log lines are always JSON" "json")
  (list "aws.defaultInstanceProfile" "use spec.instanceProfile or spec.role of the EC2NodeClass")
  (list "settings.assumeRoleARN" "let the AWS configuration of the pod assume the role")
  (list "settings.aws.assumeRoleARN" "let the AWS configuration of the pod assume the role")
  (list "settings.assumeRoleDuration" "the AWS configuration of the pod says it" "15m")
  (list "settings.aws.assumeRoleDuration" "the AWS configuration of the pod says it" "15m")
  (list "settings.aws.defaultInstanceProfile" "use spec.instanceProfile or spec.role of the EC2NodeClass")
  (list "settings.aws.enablePodENI" "pod interfaces are found out from the node")
  (list "settings.aws.enableENILimitedPodDensity" "use spec.kubelet.maxPods of the EC2NodeClass")
  (list "settings.aws.nodeNameConvention" "nodes are found by their provider id")
  (list "settings.aws.tags" "use spec.tags of the EC2NodeClass")
  (list "settings.featureGates.drift" "drift is always on")
  (list "settings.featureGates.driftEnabled" "drift is always on") -}}
{{- $old := include "karpenter.valueAt" (dict "root" $ "path" (first $gone)) -}}
{{- if and $old (not (has $old (slice $gone 2))) }}
  {{ index $gone 0 }}: {{ index $gone 1 }}
{{- end -}}
{{- end -}}
{{- end -}}
