package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
)

const (
	zones       = 3
	podsPerNode = 20
	kinds       = 5
	// replicas of a workload: on so many nodes in a row, or of one zone in a row.
	replicas = 20
)

// fleet is the one of crates/scheduler/benches/fixture/fleets.rs, which tells how it is made: nodes that run twenty pods each,
// four of each kind of `diverse`, one for each of twenty workloads.
type fleet struct {
	kube         *cache
	cloud        *fake.CloudProvider
	cluster      *state.Cluster
	pricePerHour float64
}

func newFleet(ctx context.Context, nodes int) (*fleet, error) {
	f := &fleet{kube: newCache(), cloud: cloud()}
	f.cluster = state.NewCluster(clock.RealClock{}, f.kube, f.cloud)
	pool := pool()
	pool.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
	pool.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("0s")
	pool.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	f.kube.put(pool)

	random, requests := draws(42), map[string]corev1.ResourceList{}
	for number := range nodes {
		name := fmt.Sprintf("node-%05d", number)
		var pods []*corev1.Pod
		for slot := range podsPerNode {
			kind := slot * kinds / podsPerNode
			workload := workload(number, slot, kind)
			if requests[workload] == nil {
				requests[workload] = random.requests()
			}
			p := pod(number*podsPerNode+slot, requests[workload])
			rule(p, kind, workload, workload)
			p.Spec.NodeName = name
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning}
			pods = append(pods, p)
		}
		if err := f.add(ctx, number, name, pods); err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
	}
	return f, nil
}

// workload is the one whose replica is in this slot of a node.
func workload(node, slot, kind int) string {
	if kind == zonalAffinity {
		return fmt.Sprintf("w%02d-%d-%d", slot, node%zones, (node/zones+slot)/replicas)
	}
	return fmt.Sprintf("w%02d-%d", slot, (node+slot)/replicas)
}

func (f *fleet) add(ctx context.Context, number int, name string, pods []*corev1.Pod) error {
	it, err := roomy(f.cloud.InstanceTypes, pods)
	if err != nil {
		return err
	}
	zone := fmt.Sprintf("test-zone-%d", number%zones+1)
	price, sold := it.OfferingPrice(zone, v1.CapacityTypeOnDemand)
	if !sold {
		return fmt.Errorf("%s is not sold in %s", it.Name, zone)
	}
	f.pricePerHour += price

	node, claim := &corev1.Node{}, &v1.NodeClaim{}
	node.Name, node.UID = name, types.UID(name)
	node.Labels = map[string]string{
		v1.NodePoolLabelKey:            "default",
		corev1.LabelHostname:           name,
		corev1.LabelTopologyZone:       zone,
		corev1.LabelInstanceTypeStable: it.Name,
		v1.CapacityTypeLabelKey:        v1.CapacityTypeOnDemand,
		corev1.LabelArchStable:         v1.ArchitectureAmd64,
		corev1.LabelOSStable:           string(corev1.Linux),
		v1.NodeRegisteredLabelKey:      "true",
		v1.NodeInitializedLabelKey:     "true",
	}
	node.Spec.ProviderID = "fake://" + name
	node.Status = corev1.NodeStatus{
		Capacity:    it.Capacity,
		Allocatable: it.Allocatable(),
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}
	claim.ObjectMeta = *node.ObjectMeta.DeepCopy()
	claim.Status.NodeName, claim.Status.ProviderID = name, node.Spec.ProviderID
	claim.Status.Capacity, claim.Status.Allocatable = it.Capacity, it.Allocatable()
	for _, condition := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized, v1.ConditionTypeConsolidatable} {
		claim.StatusConditions().SetTrue(condition)
	}
	f.kube.put(claim)
	f.kube.put(node)
	f.cluster.UpdateNodeClaim(claim.DeepCopy())
	if err := f.cluster.UpdateNode(ctx, node.DeepCopy()); err != nil {
		return err
	}
	for _, p := range pods {
		f.kube.put(p)
		if err := f.cluster.UpdatePod(ctx, p.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// roomy is the smallest type of which these pods take no more than two thirds.
func roomy(catalog []*cloudprovider.InstanceType, pods []*corev1.Pod) (*cloudprovider.InstanceType, error) {
	var cpu, memory int64
	for _, p := range pods {
		requests := p.Spec.Containers[0].Resources.Requests
		cpu += requests.Cpu().MilliValue()
		memory += requests.Memory().Value()
	}
	for _, it := range catalog {
		room := it.Allocatable()
		if 3*cpu <= 2*room.Cpu().MilliValue() && 3*memory <= 2*room.Memory().Value() {
			return it, nil
		}
	}
	return nil, fmt.Errorf("no type has room for %d pods", len(pods))
}
