// A certificate for the probe's own name, which Azure issues and renews. The DNS records have to be there before.

param environmentName string
param location string
param tags object

@description('The name that it is for.')
param domain string

@allowed(['CNAME', 'HTTP', 'TXT'])
param validation string

resource environment 'Microsoft.App/managedEnvironments@2026-07-01' existing = {
  name: environmentName
}

resource certificate 'Microsoft.App/managedEnvironments/managedCertificates@2026-07-01' = {
  parent: environment
  name: 'mc-${replace(domain, '.', '-')}'
  location: location
  tags: tags
  properties: {
    subjectName: domain
    domainControlValidation: validation
  }
}
