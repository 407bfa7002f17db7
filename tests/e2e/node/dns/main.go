// A CoreDNS with only the plugins that the Corefile of the test node names.
package main

import (
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func main() {
	// The order in which the plugins see a query.
	dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
	coremain.Run()
}
