// Who deploys from GitHub: workflows in the environment "production" of one repository get a token for a few minutes.
// No secret is stored anywhere, and no app registration is needed.

param name string
param location string
param tags object

@description('OWNER/NAME')
param githubRepository string

// It may change what is in this resource group, and give nobody any rights. Narrower roles for parts of the group would
// have to name every linked resource that an update of the app touches; this group holds nothing but the probe.
var contributor = subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'b24988ac-6180-42a0-ab88-20f7382dd24c')

resource deployer 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

resource trust 'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials@2024-11-30' = {
  parent: deployer
  name: 'github-production'
  properties: {
    issuer: 'https://token.actions.githubusercontent.com'
    subject: 'repo:${githubRepository}:environment:production'
    audiences: ['api://AzureADTokenExchange']
  }
}

resource mayDeploy 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, deployer.id, contributor)
  properties: {
    principalId: deployer.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: contributor
  }
}

output clientId string = deployer.properties.clientId
