package main

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache answers reads as the informers of a running controller do, and a little faster: by key, by the node of a pod, or
// all of a kind, with labels compared before anything is copied. The fake client of controller-runtime goes through JSON
// on every read, for which upstream does not pay in a cluster. Whatever else is called panics on the nil client.
type cache struct {
	client.Client
	byKey  map[reflect.Type]map[client.ObjectKey]client.Object
	all    map[reflect.Type][]client.Object
	onNode map[string][]client.Object
}

func newCache() *cache {
	return &cache{
		byKey:  map[reflect.Type]map[client.ObjectKey]client.Object{},
		all:    map[reflect.Type][]client.Object{},
		onNode: map[string][]client.Object{},
	}
}

func (c *cache) put(object client.Object) {
	kind := reflect.TypeOf(object)
	if c.byKey[kind] == nil {
		c.byKey[kind] = map[client.ObjectKey]client.Object{}
	}
	c.byKey[kind][client.ObjectKeyFromObject(object)] = object
	c.all[kind] = append(c.all[kind], object)
	if pod, ok := object.(*corev1.Pod); ok {
		c.onNode[pod.Spec.NodeName] = append(c.onNode[pod.Spec.NodeName], pod)
	}
}

func (c *cache) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	kind := reflect.TypeOf(out)
	found, ok := c.byKey[kind][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind.Elem().Name()}, key.String())
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func (c *cache) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	kind := reflect.PointerTo(reflect.ValueOf(out).Elem().FieldByName("Items").Type().Elem())
	objects := c.all[kind]
	if selector := options.FieldSelector; selector != nil && !selector.Empty() {
		node, exact := selector.RequiresExactMatch("spec.nodeName")
		if kind != reflect.TypeFor[*corev1.Pod]() || !exact {
			return fmt.Errorf("there is no index for %q", selector)
		}
		objects = c.onNode[node]
	}
	var selected []runtime.Object
	for _, object := range objects {
		if options.Namespace != "" && object.GetNamespace() != options.Namespace {
			continue
		}
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		selected = append(selected, object.DeepCopyObject())
	}
	return meta.SetList(out, selected)
}
