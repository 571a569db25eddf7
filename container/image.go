package container

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/edgehero/dispatch/internal/jsonval"
)

// ExitAuth is the capability of an image whose entrypoint reads the run's key
// and signs its exit line. Only such an image is to be given a key, or one that
// gets its supervisor from the worker.
const ExitAuth = "exitAuth"

// Can reports whether the image declares a capability.
func (i Image) Can(capability string) bool { return slices.Contains(i.Capabilities, capability) }

// Image looks an image up by reference or id; what an id stands for is asked for
// once. It returns ErrImageMissing and ErrUnavailable.
func (c *client) Image(ctx context.Context, ref string) (Image, error) {
	c.mu.Lock()
	image, ok := c.images[ref]
	c.mu.Unlock()
	if ok {
		image.Capabilities = slices.Clone(image.Capabilities)
		return image, nil
	}
	if ref == "" || strings.HasPrefix(ref, "-") {
		return Image{}, fmt.Errorf("look up image %.200q: it is no reference or id: %w", ref, ErrImageMissing)
	}
	answer, err := c.call(ctx, "image", "inspect", "--format", "{{json .}}", ref)
	if err != nil {
		return Image{}, c.imageMissing(ctx, ref, err)
	}
	image, err = readImage(answer)
	if err != nil {
		return Image{}, fmt.Errorf("look up image %.200q: %w: %w", ref, ErrUnavailable, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images[image.ID] = image
	image.Capabilities = slices.Clone(image.Capabilities)
	return image, nil
}

// imageMissing tells an image that is not there from a runtime that does not
// answer; the client says neither with a code of its own.
func (c *client) imageMissing(ctx context.Context, ref string, cause error) error {
	if _, err := c.askFacts(ctx); err != nil {
		return fmt.Errorf("look up image %.200q: %w", ref, err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("look up image %.200q: %w", ref, context.Cause(ctx))
	}
	return fmt.Errorf("look up image %.200q: %w: load it, images are never pulled: %w", ref, ErrImageMissing, cause)
}

func readImage(answer []byte) (Image, error) {
	o, err := object(answer)
	if err != nil {
		return Image{}, err
	}
	image := Image{ID: text(o.Get("Id"))}
	if image.ID == "" {
		return Image{}, fmt.Errorf("read its answer: it names no id")
	}
	config, _ := o.Get("Config").Object()
	labels, _ := config.Get("Labels").Object()
	for capability := range strings.SplitSeq(text(labels.Get(labelCapabilities)), ",") {
		if capability = strings.TrimSpace(capability); capability != "" {
			image.Capabilities = append(image.Capabilities, capability)
		}
	}
	return image, nil
}

// stringMap reads an object whose values are strings.
func stringMap(v jsonval.Value) map[string]string {
	o, _ := v.Object()
	all := map[string]string{}
	for _, member := range o {
		all[string(member.Key)] = text(member.Value)
	}
	return all
}
