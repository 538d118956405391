// Command upstream-bench times one round of upstream Karpenter's scheduler and prints what came of it as one line of JSON.
//
//	upstream-bench diverse|respect|ignore PODS
//
// One process per case, so that the peak of memory is that case's own.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	fakekube "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	kscheduling "sigs.k8s.io/karpenter/pkg/scheduling"
)

const (
	instanceTypes = 400
	// Upstream's own benchmark tests candidates with five workers.
	workers = 5
)

type measurement struct {
	Case         string  `json:"case"`
	Pods         int     `json:"pods"`
	CPUSeconds   float64 `json:"cpuSeconds"`
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"pricePerHour"`
	PeakMiB      int64   `json:"peakMiB"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "upstream-bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: upstream-bench diverse|respect|ignore PODS")
	}
	count, err := strconv.Atoi(args[1])
	if err != nil || count < 1 {
		return fmt.Errorf("%q is not a number of pods", args[1])
	}
	var pods []*corev1.Pod
	policy := options.PreferencePolicyRespect
	switch args[0] {
	case "diverse":
		pods = diverse(count)
	case "respect":
		pods = wishful(count)
	case "ignore":
		pods, policy = wishful(count), options.PreferencePolicyIgnore
	default:
		return fmt.Errorf("there is no case %q", args[0])
	}
	log.SetLogger(logging.NopLogger)
	found, err := measure(args[0], pods, policy)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func measure(name string, pods []*corev1.Pod, policy options.PreferencePolicy) (measurement, error) {
	ctx := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), &options.Options{
		CPURequests:       workers * 1000,
		PreferencePolicy:  policy,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.DefaultFeatureGates(),
	})
	scheduler, err := newScheduler(ctx, pods, policy)
	if err != nil {
		return measurement{}, err
	}
	before := usage()
	results, err := scheduler.Solve(ctx, pods)
	after := usage()
	if err != nil {
		return measurement{}, err
	}
	if refused := len(results.PodErrors); refused > 0 {
		return measurement{}, fmt.Errorf("%d of %d pods have no place", refused, len(pods))
	}
	results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	found := measurement{
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
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "default"}}
	pool.Spec.Limits = v1.Limits{
		corev1.ResourceCPU:    resource.MustParse("10000000"),
		corev1.ResourceMemory: resource.MustParse("10000000Gi"),
	}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass", Name: "default"}
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	pools := []*v1.NodePool{pool}

	cloud := fake.NewCloudProvider()
	cloud.InstanceTypes = fake.InstanceTypes(instanceTypes)
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

func usage() syscall.Rusage {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // It fails on a bad pointer or a bad selector only.
	}
	return used
}

// cpu is the processor time of all threads, the collector's included.
func cpu(used syscall.Rusage) time.Duration {
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
