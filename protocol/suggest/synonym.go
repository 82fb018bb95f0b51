package suggest

import "slices"

// synonyms are words of other programs, with the names that they stand for here. The first known one is
// meant.
var synonyms = map[string][]string{
	"integer": {"number"}, "int": {"number"}, "float": {"number"}, "double": {"number"}, "decimal": {"number"},
	"text": {"string", "prompt", "message"}, "str": {"string"}, "list": {"array", "items"}, "dict": {"object"}, "map": {"object"}, "json": {"object"},
	"constant": {"static"}, "literal": {"static"}, "value": {"static"}, "reference": {"connection"}, "ref": {"connection"}, "node": {"connection"},
	"approve": {"accept"}, "approved": {"accept"}, "yes": {"accept"}, "deny": {"reject", "disabled"}, "block": {"disabled"}, "blocked": {"disabled"}, "forbidden": {"disabled"}, "allowed": {"optional"}, "decline": {"reject"}, "no": {"reject"},
	"cron": {"schedule"}, "timer": {"schedule"}, "interval": {"schedule"}, "http": {"webhook"},
	"eq": {"equals"}, "equal": {"equals"}, "ne": {"notEquals"}, "neq": {"notEquals"}, "match": {"regex"}, "matches": {"regex"}, "includes": {"contains"},
	"from": {"sourceNodeId"}, "source": {"sourceNodeId"}, "to": {"targetNodeId"}, "target": {"targetNodeId"}, "if": {"condition"}, "when": {"condition"},
	"type": {"typeId"}, "nodeType": {"typeId"}, "kind": {"typeId", "envelopeType"}, "title": {"name"},
	"args": {"arguments"}, "params": {"arguments", "variables"}, "parameters": {"arguments", "variables"},
	"inputs": {"inputMapping", "variables", "arguments"}, "input": {"inputMapping", "arguments"}, "outputs": {"outputMapping"},
	"inputSchema": {"variables"}, "vars": {"variables"}, "steps": {"nodes"}, "tasks": {"nodes"}, "connections": {"edges"}, "links": {"edges"},
	"assignees": {"approversList"}, "assignee": {"approversList"}, "approvers": {"approversList"}, "reviewers": {"approversList"},
	"response_format": {"outputSchema"}, "responseFormat": {"outputSchema"}, "jsonSchema": {"outputSchema"}, "json_schema": {"outputSchema"},
	"instructions": {"system"}, "systemPrompt": {"system"}, "system_prompt": {"system"},
	"userPrompt": {"prompt"}, "user_prompt": {"prompt"}, "user": {"prompt"}, "question": {"prompt"}, "content": {"prompt", "message"}, "template": {"prompt"},
	"max_output_tokens": {"maxTokens"}, "max_completion_tokens": {"maxTokens"},
	"serverName": {"server"}, "serverId": {"server"}, "toolName": {"tool"}, "agentId": {"agent"}, "agentUrl": {"agent"},
	"workflow": {"workflowId"}, "childWorkflowId": {"workflowId"}, "id": {"templateId", "workflowId"},
	"retries": {"maxRetries"}, "attempts": {"maxRetries"}, "maxAttempts": {"maxRetries"}, "fallback": {"onError"}, "fallbacks": {"onError"}, "fallbackModels": {"onError"},
	"url": {"baseUrl"}, "endpoint": {"baseUrl"}, "apiKey": {"key"}, "api_key": {"key"}, "token": {"key"}, "allow": {"allowedModels", "optional"}, "models": {"allowedModels"},
	"flavour": {"api"}, "flavor": {"api"}, "dialect": {"api"}, "base_url": {"baseUrl"}, "baseURL": {"baseUrl"}, "secret": {"key"}, "timeout": {"timeouts", "timeoutMs"},
	"rates": {"limits"}, "rate": {"limits"}, "rpm": {"requestsPerMinute"}, "tpm": {"tokensPerMinute"}, "tools": {"function-calling"}, "tool-use": {"function-calling"}, "thinking": {"reasoning"}, "json-mode": {"structured-output"}, "concurrency": {"maxConcurrent"},
	"for": {"items"}, "forEach": {"items"}, "each": {"items"}, "over": {"items"}, "times": {"count"}, "repeat": {"count"}, "while": {"until"}, "do": {"expression"}, "body": {"expression"},
	"continue": {"absorb"}, "ignore": {"absorb"}, "fail": {"fail-parent", "fail-node"}, "error": {"message"}, "reason": {"message"},
	"seconds": {"delayMs", "timeoutSec"}, "duration": {"delayMs"}, "sleep": {"delayMs"}, "main": {"primary"}, "choices": {"actions"}, "buttons": {"actions"}, "options": {"actions"},
	"pageSize": {"limit"}, "page_size": {"limit"}, "per_page": {"limit"}, "perPage": {"limit"}, "max": {"limit"},
	"pageToken": {"cursor"}, "page_token": {"cursor"}, "after": {"cursor"}, "page": {"cursor"}, "state": {"status"}, "order_by": {"sort"}, "orderBy": {"sort"},
	"labels": {"tags"}, "callback": {"callbackUrl"}, "webhook_url": {"callbackUrl"}, "webhookUrl": {"callbackUrl"},
}

// Synonym returns the known name that a word of another program stands for; empty if there is none.
func Synonym(word string, known []string) string {
	for _, name := range synonyms[word] {
		if slices.Contains(known, name) {
			return name
		}
	}
	return ""
}
