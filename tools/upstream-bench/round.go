package main

import (
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	fakekube "sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	kscheduling "sigs.k8s.io/karpenter/pkg/scheduling"
)

// round is what came of one run of the scheduler.
type round struct {
	Case         string  `json:"case"`
	Pods         int     `json:"pods"`
	CPUSeconds   float64 `json:"cpuSeconds"`
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"pricePerHour"`
	PeakMiB      int64   `json:"peakMiB"`
}

func measureRound(name string, pods []*corev1.Pod, policy options.PreferencePolicy) (round, error) {
	ctx := contextWith(policy)
	scheduler, err := newScheduler(ctx, pods, policy)
	if err != nil {
		return round{}, err
	}
	before := usage()
	results, err := scheduler.Solve(ctx, pods)
	after := usage()
	if err != nil {
		return round{}, err
	}
	if refused := len(results.PodErrors); refused > 0 {
		return round{}, fmt.Errorf("%d of %d pods have no place", refused, len(pods))
	}
	results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	found := round{
		Case:       name,
		Pods:       len(pods),
		CPUSeconds: (cpu(after) - cpu(before)).Seconds(),
		Nodes:      len(results.NewNodeClaims),
		PeakMiB:    after.Maxrss / 1024,
	}
	for _, claim := range results.NewNodeClaims {
		found.PricePerHour += price(claim)
	}
	return found, nil
}

func newScheduler(ctx context.Context, pods []*corev1.Pod, policy options.PreferencePolicy) (*scheduling.Scheduler, error) {
	opts := []scheduling.Options{scheduling.NumConcurrentReconciles(workers)}
	if policy == options.PreferencePolicyIgnore {
		opts = append(opts, scheduling.IgnorePreferences)
	}
	pool, cloud := pool(), cloud()
	pools := []*v1.NodePool{pool}
	catalog := map[string][]*cloudprovider.InstanceType{pool.Name: cloud.InstanceTypes}

	kube := fakekube.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	cluster := state.NewCluster(clock.RealClock{}, kube, cloud)
	topology, err := scheduling.NewTopology(ctx, kube, cluster, nil, pools, catalog, pods, opts...)
	if err != nil {
		return nil, fmt.Errorf("counting the pods of each domain: %w", err)
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	return scheduling.NewScheduler(ctx, kube, pools, cluster, nil, topology, catalog, nil, recorder, clock.RealClock{}, nil, nil, opts...), nil
}

// price is what the cheapest way to buy a machine for the claim costs per hour.
func price(claim *scheduling.NodeClaim) float64 {
	requirements := kscheduling.NewNodeSelectorRequirementsWithMinValues(claim.ToNodeClaim().Spec.Requirements...)
	cheapest := math.Inf(1)
	for _, instanceType := range claim.InstanceTypeOptions {
		for _, offering := range instanceType.Offerings.Available().Compatible(requirements) {
			cheapest = min(cheapest, offering.Price)
		}
	}
	return cheapest
}
