package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// draws is the generator of crates/scheduler/benches/fixture: both sides get the very same pods from it, which is what
// makes their prices comparable. The order of the draws is part of that agreement.
type draws uint64

func (d *draws) below(bound uint64) uint64 {
	*d = *d*6_364_136_223_846_793_005 + 1_442_695_040_888_963_407
	return uint64(*d>>33) % bound
}

func (d *draws) letter() string {
	return string(rune('a' + d.below(7)))
}

func (d *draws) requests() corev1.ResourceList {
	cpu := []int64{100, 250, 500, 1000, 1500}[d.below(5)]
	memory := []int64{100, 256, 512, 1024, 2048, 4096}[d.below(6)]
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
	}
}

// The kinds of `diverse`; every other number is a plain pod.
const (
	zonalSpread = iota + 1
	hostSpread
	zonalAffinity
	hostAntiAffinity
)

// diverse are a fifth each of plain pods, zonal spreads, host spreads, zonal self-affinity and host anti-affinity; what
// does not divide by five is plain.
func diverse(count int) []*corev1.Pod {
	random, fifth := draws(42), count/5
	pods := make([]*corev1.Pod, count)
	for number := range pods {
		p := pod(number, random.requests())
		kind := 0
		if fifth > 0 {
			kind = number / fifth
		}
		own, selected := "nginx", ""
		if kind != hostAntiAffinity {
			own = random.letter()
		}
		if kind == zonalSpread || kind == hostSpread {
			selected = random.letter()
		}
		rule(p, kind, own, selected)
		pods[number] = p
	}
	return pods
}

// rule gives a pod the labels and the rule of its kind. A spread is over the pods that are labelled `selected`; affinity and
// anti-affinity are towards those that are labelled as the pod itself.
func rule(p *corev1.Pod, kind int, own, selected string) {
	switch kind {
	case zonalSpread:
		p.Labels = map[string]string{"my-label": own}
		p.Spec.TopologySpreadConstraints = spread(corev1.LabelTopologyZone, selected)
	case hostSpread:
		p.Labels = map[string]string{"my-label": own}
		p.Spec.TopologySpreadConstraints = spread(corev1.LabelHostname, selected)
	case zonalAffinity:
		p.Labels = map[string]string{"my-affininity": own}
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(corev1.LabelTopologyZone, p.Labels)},
		}}
	case hostAntiAffinity:
		p.Labels = map[string]string{"app": own}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(corev1.LabelHostname, p.Labels)},
		}}
	default:
		p.Labels = map[string]string{"my-label": own}
	}
}

// wishful are equal pods that would like a certain zone, and a zone and a host of their own.
func wishful(count int) []*corev1.Pod {
	random := draws(42)
	requests := random.requests()
	labels := map[string]string{"app": "nginx"}
	pods := make([]*corev1.Pod, count)
	for number := range pods {
		p := pod(number, requests.DeepCopy())
		p.Labels = labels
		p.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1,
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"test-zone-1"},
				}}},
			}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 10, PodAffinityTerm: term(corev1.LabelTopologyZone, labels)},
				{Weight: 1, PodAffinityTerm: term(corev1.LabelHostname, labels)},
			}},
		}
		pods[number] = p
	}
	return pods
}

func pod(number int, requests corev1.ResourceList) *corev1.Pod {
	name := fmt.Sprintf("pod-%05d", number)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: requests},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
}

func spread(key, letter string) []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       key,
		WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"my-label": letter}},
	}}
}

func term(key string, labels map[string]string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
}
