package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const swagger = `{"definitions": {
  "io.k8s.Thing": {
    "type": "object", "description": "d", "required": ["spec"],
    "properties": {
      "kind": {"type": "string"},
      "spec": {"$ref": "#/definitions/io.k8s.Spec"}
    },
    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Thing"}]
  },
  "io.k8s.Spec": {
    "type": "object",
    "properties": {
      "port": {"type": "string", "format": "int-or-string"},
      "labels": {"type": "object", "additionalProperties": {"type": "string"}},
      "within": {"type": "array", "items": {"$ref": "#/definitions/io.k8s.Spec"}}
    }
  }
}}`

func TestFromSwagger_IsSelfContainedAndClosed(t *testing.T) {
	t.Parallel()
	all, err := fromSwagger([]byte(swagger))
	require.NoError(t, err)
	require.Len(t, all, 1)
	got, err := json.Marshal(all[0].body)
	require.NoError(t, err)
	require.JSONEq(t, `{
	  "type": "object", "required": ["spec"], "additionalProperties": false,
	  "properties": {
	    "kind": {"type": "string"},
	    "spec": {
	      "type": "object", "additionalProperties": false,
	      "properties": {
	        "port": {"type": ["integer", "string"]},
	        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
	        "within": {"type": "array", "items": {}}
	      }
	    }
	  }
	}`, string(got))
}

func TestFromSwagger_RefusesWhatRefersToNothing(t *testing.T) {
	t.Parallel()
	_, err := fromSwagger([]byte(`{"definitions": {"a": {"properties": {"b": {"$ref": "#/definitions/c"}}, "x-kubernetes-group-version-kind": [{"kind": "A"}]}}}`))
	require.ErrorContains(t, err, "#/definitions/c is not defined")
	_, err = fromSwagger([]byte(`{}`))
	require.Error(t, err)
}

const crd = `
spec:
  group: keda.sh
  names: {kind: ScaledObject}
  versions:
    - name: v1alpha1
      served: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            metadata: {type: object}
            spec:
              type: object
              properties:
                free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}
                min: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}
    - name: v0
      served: false
      schema: {openAPIV3Schema: {type: object}}
`

func TestRun_WritesWhereKubeconformLooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, doc := filepath.Join(dir, "crd.yaml"), filepath.Join(dir, "swagger.json")
	require.NoError(t, os.WriteFile(file, []byte(crd), 0o600))
	require.NoError(t, os.WriteFile(doc, []byte(swagger), 0o600))
	n, err := run(filepath.Join(dir, "out"), doc, []string{file})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.FileExists(t, filepath.Join(dir, "out", "v1", "thing_v1.json"))
	got, err := os.ReadFile(filepath.Join(dir, "out", "keda.sh", "scaledobject_v1alpha1.json"))
	require.NoError(t, err)
	require.JSONEq(t, `{
	  "type": "object", "additionalProperties": false,
	  "properties": {
	    "metadata": {"type": "object"},
	    "spec": {
	      "type": "object", "additionalProperties": false,
	      "properties": {
	        "free": {"type": "object", "properties": {"a": {"type": "string"}}},
	        "min": {"type": ["integer", "string"]}
	      }
	    }
	  }
	}`, string(got))
}
