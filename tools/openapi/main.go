// Command openapi prints the OpenAPI description of the REST API. `make console` generates
// the console's types from it.
package main

import (
	"log"
	"os"

	"waybill.dev/waybill/services/gateway/openapi"
)

func main() {
	doc, err := openapi.Document("")
	if err == nil {
		_, err = os.Stdout.Write(doc)
	}
	if err != nil {
		log.Fatal(err)
	}
}
