package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// candidates is what simulations of a fleet without one of its nodes took.
type candidates struct {
	Nodes        int     `json:"nodes"`
	Pods         int     `json:"pods"`
	PricePerHour float64 `json:"pricePerHour"`
	Candidates   int     `json:"candidates"`
	Sample       int     `json:"sample"`
	// Of one simulation, the mean.
	CPUMillis float64 `json:"cpuMillis"`
	PeakMiB   int64   `json:"peakMiB"`
}

// measureCandidates times what consolidation does for each candidate alone: the simulation, without what follows from it.
func measureCandidates(nodes, sample int) (candidates, error) {
	ctx := contextWith(options.PreferencePolicyRespect)
	f, err := newFleet(ctx, nodes)
	if err != nil {
		return candidates{}, err
	}
	now, recorder := clock.RealClock{}, events.NewRecorder(&record.FakeRecorder{})
	provisioner := provisioning.NewProvisioner(f.kube, recorder, f.cloud, f.cluster, now, nil, nil)
	queue := disruption.NewQueue(f.kube, recorder, f.cluster, now, provisioner)
	method := disruption.NewSingleNodeConsolidation(disruption.MakeConsolidation(now, f.cluster, f.kube, provisioner, f.cloud, recorder, queue))
	all, err := disruption.GetCandidates(ctx, f.cluster, f.kube, recorder, now, f.cloud, method.ShouldDisrupt, method.Class(), queue)
	if err != nil {
		return candidates{}, fmt.Errorf("looking for candidates: %w", err)
	}
	if len(all) < sample {
		return candidates{}, fmt.Errorf("%d of %d nodes are candidates", len(all), nodes)
	}
	slices.SortFunc(all, func(a, b *disruption.Candidate) int { return cmp.Compare(a.Name(), b.Name()) })
	var spent time.Duration
	for number := range sample {
		candidate := all[number*len(all)/sample]
		before := usage()
		results, err := disruption.SimulateScheduling(ctx, f.kube, f.cluster, provisioner, now, recorder,
			[]scheduling.Options{scheduling.IsConsolidationSimulation}, candidate)
		spent += cpu(usage()) - cpu(before)
		if err != nil {
			return candidates{}, fmt.Errorf("without %s: %w", candidate.Name(), err)
		}
		if refused := len(results.PodErrors); refused > 0 {
			return candidates{}, fmt.Errorf("without %s %d pods have no place", candidate.Name(), refused)
		}
	}
	return candidates{
		Nodes:        nodes,
		Pods:         nodes * podsPerNode,
		PricePerHour: f.pricePerHour,
		Candidates:   len(all),
		Sample:       sample,
		CPUMillis:    spent.Seconds() * 1000 / float64(sample),
		PeakMiB:      usage().Maxrss / 1024,
	}, nil
}
