// Everything that a public probe needs in Azure, in one resource group: docs/deploying.md says how to use it.
//
// Names follow the Cloud Adoption Framework: an abbreviation of the type, the workload, the environment.
targetScope = 'resourceGroup'

@description('The workload, part of every name: letters and digits, as registries allow no more.')
@minLength(2)
@maxLength(16)
param workload string = 'mcpprobe'

@description('Which deployment of it this is, part of every name: letters and digits.')
@minLength(2)
@maxLength(8)
param environmentName string = 'prod'

@description('Where all of it is. The default: where the resource group is.')
param location string = resourceGroup().location

@description('The image by digest: REGISTRY/mcp-probe@sha256:… Empty: only what comes before the first image, without the app.')
param image string = ''

@description('The name of the probe on the internet, such as mcp.example.org. Empty: the name that Azure gives it.')
param customDomain string = ''

@description('How the certificate proves the name: CNAME for a subdomain, HTTP for an apex domain with an A record.')
@allowed(['CNAME', 'HTTP', 'TXT'])
param domainValidation string = 'CNAME'

@description('1 keeps the probe there: its sessions, tasks and its event log are in memory. 0 costs less, and forgets all of it after minutes without a new request, also while streams are open.')
@minValue(0)
@maxValue(1)
param minReplicas int = 1

@description('only: each visitor makes a private room, for a public probe. off: one probe for all, for a host that only you reach.')
@allowed(['off', 'on', 'only'])
param rooms string = 'only'

@description('1, or 3 behind an app with HAProxy, which needs rooms only and requestStateKeys (infra/provision.py checks it): docs/scaling.md.')
@allowed([1, 3])
param replicas int = 1

@description('HAProxy, for 3 replicas.')
param proxyImage string = 'docker.io/library/haproxy:3.2-alpine'

@description('The GitHub repository whose environment "production" may deploy: OWNER/NAME. Empty: none may.')
param githubRepository string = ''

// No defaults: a deployment that does not name a secret would take away the one that is there.

@description('What tool hosts must know. none: there is no /toolhost.')
@minLength(4)
@secure()
param toolhostSecret string

@description('Keys that seal requestState, 64 hex digits each, comma separated. none: a random one at each start, and what a client got before cannot be continued.')
@minLength(4)
@secure()
param requestStateKeys string

@description('Settings of the probe beside those that this file makes: { MCP_PROBE_TOOLS: \'all\' }.')
param settings object = {}

var suffix = '${workload}-${environmentName}'
// What is public: the probe, or the proxy in front of three.
var publicName = 'ca-${suffix}'
var replicaNames = replicas == 1 ? [publicName] : ['${publicName}-1', '${publicName}-2', '${publicName}-3']
var deployed = empty(image) ? [] : replicaNames
var tags = { workload: workload, environment: environmentName }

module logs 'modules/log-analytics.bicep' = {
  name: 'logs'
  params: {
    name: 'log-${suffix}'
    location: location
    tags: tags
  }
}

module identity 'modules/identity.bicep' = {
  name: 'identity'
  params: {
    name: 'id-${suffix}'
    location: location
    tags: tags
  }
}

module registry 'modules/registry.bicep' = {
  name: 'registry'
  params: {
    // the name is part of a public host name, so it has to be nobody else's
    name: 'cr${workload}${environmentName}${take(uniqueString(resourceGroup().id), 6)}'
    location: location
    tags: tags
    pullPrincipalId: identity.outputs.principalId
  }
}

module environment 'modules/environment.bicep' = {
  name: 'environment'
  params: {
    name: 'cae-${suffix}'
    location: location
    tags: tags
    workspaceName: logs.outputs.name
  }
}

module deployer 'modules/deployer.bicep' = if (!empty(githubRepository)) {
  name: 'deployer'
  params: {
    name: 'id-${suffix}-deploy'
    location: location
    tags: tags
    githubRepository: githubRepository
  }
}

module app 'modules/app.bicep' = [for replica in deployed: {
  name: replica
  params: {
    name: replica
    publicName: publicName
    rooms: rooms
    location: location
    tags: tags
    environmentId: environment.outputs.id
    environmentDomain: environment.outputs.defaultDomain
    identityId: identity.outputs.id
    registryServer: registry.outputs.loginServer
    image: image
    customDomain: customDomain
    minReplicas: minReplicas
    toolhostSecret: toolhostSecret == 'none' ? '' : toolhostSecret
    requestStateKeys: requestStateKeys == 'none' ? '' : requestStateKeys
    settings: settings
  }
}]

module proxy 'modules/proxy.bicep' = if (!empty(image) && replicas > 1) {
  name: 'proxy'
  params: {
    name: publicName
    location: location
    tags: tags
    environmentId: environment.outputs.id
    image: proxyImage
    customDomain: customDomain
    replicas: [for replica in replicaNames: '${replica}:8000']
  }
  // it looks their names up when it starts
  dependsOn: [app]
}

// The name has to be the app's before Azure issues a certificate for it; the app takes it up by itself (binding 'Auto').
module certificate 'modules/certificate.bicep' = if (!empty(image) && !empty(customDomain)) {
  name: 'certificate'
  params: {
    environmentName: environment.outputs.name
    location: location
    tags: tags
    domain: customDomain
    validation: domainValidation
  }
  dependsOn: [app, proxy]
}

@description('The registry, for `az acr`.')
output registryName string = registry.outputs.name

@description('What image names begin with.')
output registryServer string = registry.outputs.loginServer

@description('The container app, for `az containerapp`.')
output appName string = publicName

@description('The apps whose image `infra/deploy.py` changes, comma separated.')
output replicaNames string = join(replicaNames, ',')

@description('The name that Azure gives the probe: the target of the CNAME record.')
output defaultHost string = '${publicName}.${environment.outputs.defaultDomain}'

@description('The address of the environment, for the A record of an apex domain.')
output environmentAddress string = environment.outputs.staticIp

@description('The TXT record asuid.NAME, by which Azure knows that the domain is yours.')
output domainVerification string = environment.outputs.domainVerification

@description('AZURE_CLIENT_ID of the workflow. Empty without githubRepository.')
output deployClientId string = empty(githubRepository) ? '' : deployer!.outputs.clientId
