package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/worker"
)

var _ worker.Runtime = (*venues)(nil)

// A venue is a runtime of package container.
type venue interface {
	worker.Runtime
	container.Holder
}

// venues runs a job that names an image in a container, and one that names none
// as a process of this host.
type venues struct {
	process venue
	// open lists the container runtimes in the order they are tried.
	open []func() (venue, error)
	log  *slog.Logger

	mu         sync.Mutex
	containers venue // nil until one has answered
	name       string
}

// findLimit bounds the search for a container runtime that answers.
const findLimit = 20 * time.Second

// container returns the runtime that containers run under: the first that
// answers, which is asked again at each call until one does.
func (v *venues) container(ctx context.Context) (venue, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.containers != nil {
		return v.containers, nil
	}
	ctx, cancel := context.WithTimeout(ctx, findLimit)
	defer cancel()
	var tried []string
	for _, open := range v.open {
		r, err := open()
		if err == nil {
			var facts container.Facts
			if facts, err = r.Facts(ctx); err == nil {
				v.containers, v.name = r, facts.Runtime
				v.log.Info("runtime_found", "runtime", facts.Runtime, "version", facts.Version,
					"cgroup", facts.Cgroup, "unenforced", facts.Unenforced)
				return r, nil
			}
		}
		tried = append(tried, err.Error())
	}
	return nil, fmt.Errorf("find a container runtime: %s: %w", strings.Join(tried, "; "), container.ErrUnavailable)
}

// of returns the runtime for an image; "" is none.
func (v *venues) of(ctx context.Context, image string) (venue, error) {
	if image == "" {
		return v.process, nil
	}
	return v.container(ctx)
}

// backend is the word that a record has for the venue of an image.
func (v *venues) backend(image string) string {
	if image == "" {
		return "process"
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.name
}

// Facts are the container runtime's where one answers: it may have less of the
// host than the host has.
func (v *venues) Facts(ctx context.Context) (container.Facts, error) {
	if len(v.open) > 0 {
		if r, err := v.container(ctx); err == nil {
			return r.Facts(ctx)
		}
	}
	return v.process.Facts(ctx)
}

func (v *venues) Image(ctx context.Context, ref string) (container.Image, error) {
	r, err := v.of(ctx, ref)
	if err != nil {
		return container.Image{}, err
	}
	return r.Image(ctx, ref)
}

func (v *venues) Run(ctx context.Context, spec container.Spec, io container.IO) (container.Result, error) {
	r, err := v.of(ctx, spec.Image)
	if err != nil {
		return container.Result{}, err
	}
	return r.Run(ctx, spec, io)
}

func (v *venues) Stop(ctx context.Context, name string) error {
	return v.each(func(r venue) error { return r.Stop(ctx, name) })
}

func (v *venues) List(ctx context.Context, filter container.Labels) (all []container.State, err error) {
	err = v.each(func(r venue) error {
		states, err := r.List(ctx, filter)
		all = append(all, states...)
		return err
	})
	return all, err
}

func (v *venues) each(do func(venue) error) error {
	v.mu.Lock()
	known := []venue{v.process}
	if v.containers != nil {
		known = append(known, v.containers)
	}
	v.mu.Unlock()
	var errs []error
	for _, r := range known {
		errs = append(errs, do(r))
	}
	return errors.Join(errs...)
}

// holders are what a sweep of this host asks.
func (v *venues) holders(ctx context.Context) []container.Holder {
	holders := []container.Holder{v.process}
	if len(v.open) > 0 {
		if r, err := v.container(ctx); err == nil {
			holders = append(holders, r)
		}
	}
	return holders
}
