package record

import (
	"maps"
	"slices"

	"github.com/edgehero/dispatch/exit"
)

const (
	// OperatorCancel is the reason of a run that somebody asked to be cancelled,
	// which is what whoever asked is told.
	OperatorCancel exit.Reason = "operator-cancel"
	// WorkerError is the reason of a failure that has no token of its own.
	WorkerError exit.Reason = "worker-error"
)

// meanings is the closed list of reasons, with one line each for operators.
var meanings = map[exit.Reason]string{
	"provider-auth-refused":       "the model provider refused the credentials",
	exit.CostCap:                  "the run reached its cost cap, or its cost could not be bounded",
	"model-not-allowed":           "the model is not one that the policy allows",
	"model-roles-invalid":         "the model roles of the job are not well formed",
	"model-roles-shadowed":        "something in the workspace would have replaced the model roles",
	"cost-cap-unenforceable":      "the runner could not enforce the cost cap",
	"model-policy-unenforceable":  "the runner could not enforce the model policy",
	"mcp-unavailable":             "a tool server did not come up",
	"mcp-config-invalid":          "the tool server configuration is not well formed",
	"mcp-config-mismatch":         "the tool server configuration is not the one that was approved",
	"mcp-secret-missing":          "a tool server's secret is missing",
	"mcp-command-missing":         "a tool server's command is not in the image",
	"mcp-shadowed":                "something in the workspace would have replaced a tool server",
	"exclude-tool-not-loaded":     "a tool that was to be excluded is not known",
	"answer-draft-refused":        "the drafted answer was refused",
	"await-input-shadowed":        "something in the workspace would have replaced the question tool",
	"await-input-without-session": "the run asked for input and had no session to come back to",
	"report-progress-shadowed":    "something in the workspace would have replaced the progress tool",
	"steer-inbox-missing":         "the inbox for steering messages is missing",
	"steer-no-exit-key":           "steering needs a signed exit line and there was no key",
	"question-group-refused":      "a group of questions was refused",
	"question-group-unanswered":   "a group of questions was not answered",
	"approval-config-invalid":     "the approval configuration is not well formed",
	"approval-without-session":    "the run asked for an approval and had no session to come back to",
	"approval-shadowed":           "something in the workspace would have replaced the approval tool",
	"approval-decision-invalid":   "the decision on an approval is not well formed",
	exit.AwaitingInput:            "the run waits for an answer",
	exit.AwaitingApproval:         "the run waits for an approval",
	"runner-policy":               "the runner stopped by policy and gave no reason",
	exit.OOMKilled:                "the run reached its memory limit and was killed",
	OperatorCancel:                "somebody asked for the job to be cancelled",
	"job-timeout":                 "the run reached its time limit",
	"worker-abort":                "the worker stopped the run, most often because it was shutting down",
	"job-image-missing":           "the job's image is not on this host",
	"job-size-exceeds-host":       "the job asks for more than this host has",
	"job-size-exceeds-share":      "the job asks for more than its share of this host",
	"prepare-refused":             "the job was refused as its workspace was prepared",
	"container-infra-exit":        "the container reported a fault of its surroundings",
	"container-never-started":     "the container did not start",
	"container-detached":          "the worker lost sight of the container",
	"container-unknown-exit":      "the container ended in a way that says nothing",
	"stalled":                     "the job took its worker with it too often",
	"attempts-exhausted":          "the job has no attempt left",
	WorkerError:                   "the worker failed, its log says how",
}

// Meaning returns what a reason of the closed list means, in one line; ok is
// false for any other reason.
func Meaning(reason exit.Reason) (meaning string, ok bool) {
	meaning, ok = meanings[reason]
	return meaning, ok
}

// Reasons returns the closed list of reasons, sorted.
func Reasons() []exit.Reason { return slices.Sorted(maps.Keys(meanings)) }
