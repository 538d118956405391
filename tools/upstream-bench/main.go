// Command upstream-bench times upstream Karpenter and prints what came of it as one line of JSON.
//
//	upstream-bench diverse|respect|ignore PODS     one round of its scheduler
//	upstream-bench candidates NODES [SAMPLE]       its simulations of a fleet without one node, for SAMPLE nodes (default 10)
//
// One process per case, so that the peak of memory is that case's own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

const (
	instanceTypes = 400
	// Upstream's own benchmark tests candidates with five workers.
	workers = 5
	// Simulations of one candidate take about as long as each other.
	defaultSample = 10
)

func main() {
	log.SetLogger(logging.NopLogger)
	found, err := run(os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream-bench:", err)
		os.Exit(1)
	}
}

func run(args []string) (any, error) {
	if len(args) < 2 {
		return nil, errors.New("usage: upstream-bench diverse|respect|ignore PODS, or upstream-bench candidates NODES [SAMPLE]")
	}
	var numbers []int
	for _, arg := range args[1:] {
		number, err := strconv.Atoi(arg)
		if err != nil || number < 1 {
			return nil, fmt.Errorf("%q is not a positive number", arg)
		}
		numbers = append(numbers, number)
	}
	name, size := args[0], numbers[0]
	switch {
	case name == "candidates" && len(numbers) == 1:
		return measureCandidates(size, defaultSample)
	case name == "candidates" && len(numbers) == 2:
		return measureCandidates(size, numbers[1])
	case len(numbers) > 1:
		return nil, fmt.Errorf("case %q takes one number", name)
	case name == "diverse":
		return measureRound(name, diverse(size), options.PreferencePolicyRespect)
	case name == "respect":
		return measureRound(name, wishful(size), options.PreferencePolicyRespect)
	case name == "ignore":
		return measureRound(name, wishful(size), options.PreferencePolicyIgnore)
	}
	return nil, fmt.Errorf("there is no case %q", name)
}

func contextWith(policy options.PreferencePolicy) context.Context {
	return options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), &options.Options{
		CPURequests:       workers * 1000,
		PreferencePolicy:  policy,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.DefaultFeatureGates(),
	})
}

func pool() *v1.NodePool {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "default"}}
	pool.Spec.Limits = v1.Limits{
		corev1.ResourceCPU:    resource.MustParse("10000000"),
		corev1.ResourceMemory: resource.MustParse("10000000Gi"),
	}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass", Name: "default"}
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	return pool
}

func cloud() *fake.CloudProvider {
	cloud := fake.NewCloudProvider()
	cloud.InstanceTypes = fake.InstanceTypes(instanceTypes)
	return cloud
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
