// Where the images are. Nobody has a password for it.

@minLength(5)
@maxLength(50)
param name string
param location string
param tags object

@description('The identity that may pull, and do nothing else.')
param pullPrincipalId string

var acrPull = subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '7f951dda-4ed3-4680-a7ca-43fe172d538d')

resource registry 'Microsoft.ContainerRegistry/registries@2025-11-01' = {
  name: name
  location: location
  tags: tags
  // 10 GB; infra/deploy.py deletes old images, as retention policies need Premium
  sku: { name: 'Basic' }
  properties: {
    adminUserEnabled: false
    // AcrPull means what it says only in this mode
    roleAssignmentMode: 'LegacyRegistryPermissions'
  }
}

resource mayPull 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, pullPrincipalId, acrPull)
  scope: registry
  properties: {
    principalId: pullPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: acrPull
  }
}

output name string = registry.name
output loginServer string = registry.properties.loginServer
